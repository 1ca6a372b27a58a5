package expiry

import "github.com/spf13/pflag"

// annotation marks flags that name files with certificates, by their kind.
const annotation = "certificates"

// Flags marks flags of fs that name files with certificates of a kind: a process that has
// the flags watches their expiry.
func Flags(fs *pflag.FlagSet, kind Kind, names ...string) {
	for _, name := range names {
		_ = fs.SetAnnotation(name, annotation, []string{string(kind)})
	}
}

// AddFlags adds the files that marked flags name.
func (w *Watch) AddFlags(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		kinds := f.Annotations[annotation]
		if kinds == nil {
			return
		}
		files := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			files = list.GetSlice()
		}
		for _, file := range files {
			if file != "" {
				w.Add(Source{Kind: Kind(kinds[0]), Name: file})
			}
		}
	})
}
