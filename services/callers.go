package services

// Callers says who may call what: for every contract, or one method of it as in
// "Store/Create", the names of the services that may. The carriage checks it
// against the peer's certificate; a call without a row is refused, and the row of
// a method holds instead of the row of its contract.
//
// Admission updates one thing: what is in use in the status of a resource quota, with
// a compare-and-swap, because nobody else sees all that uses something up in time.
//
// Workers (csr-signer, token-cleaner ...) have no rows: they are clients of the
// public API and nothing else.
func Callers() map[string][]string {
	frontdoor := []string{"frontdoor"}
	readers := []string{"frontdoor", "authn", "authz", "admission"}
	return map[string][]string{
		"Store":        readers,
		"Store/Create": frontdoor,
		"Store/Update": {"frontdoor", "admission"},
		"Store/Delete": frontdoor,
		"WatchHub":     readers,
		"Authn":        frontdoor,
		"Authz":        {"frontdoor", "admission"},
		"Admission":    frontdoor,
	}
}
