package services

import "context"

// ForEach reads a whole collection at one revision, page by page, and hands over
// each object. It returns that revision.
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
