package services

import "context"

// ForEach lists a collection page by page at one revision and calls visit for each object.
// It returns the revision, or the first error.
func ForEach(ctx context.Context, store Reader, r ListRequest, visit func(Object) error) (int64, error) {
	for {
		page, err := store.List(ctx, r)
		if err != nil {
			return 0, err
		}
		for _, object := range page.Objects {
			if err := visit(object); err != nil {
				return 0, err
			}
		}
		if page.Next == "" {
			return page.Revision, nil
		}
		r = page.Following(r)
	}
}
