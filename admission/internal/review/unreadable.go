package review

// unreadables are collections of any type.
type unreadables interface{ Unreadable(namespace string) error }

// UnreadableIn returns a function that returns the error of an object in the namespace of a request that cannot be read, if
// the objects concern it.
func UnreadableIn(of unreadables, concerns func(*Review) bool) func(*Review) error {
	return func(r *Review) error {
		if of == nil || r.Namespace == "" {
			return nil
		}
		if err := of.Unreadable(r.Namespace); err != nil && concerns(r) {
			return err
		}
		return nil
	}
}

// Unreadable returns the error of an object of a collection that cannot be read; nil if there is none or no collection.
func Unreadable(of unreadables) error {
	if of == nil {
		return nil
	}
	return of.Unreadable("")
}

// UnreadableBound returns the error of a policy, or of a binding if there are policies.
func UnreadableBound[P, B any](policies Collection[P], bindings Collection[B]) error {
	if policies == nil || bindings == nil {
		return nil
	}
	if err := policies.Unreadable(""); err != nil {
		return err
	}
	if err := bindings.Unreadable(""); err != nil && len(policies.List("")) > 0 {
		return err
	}
	return nil
}
