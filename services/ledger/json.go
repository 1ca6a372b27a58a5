package ledger

import "bytes"

// scan counts the values of a JSON text: never fewer than decoding it makes, keys of objects apart. It stops
// above most values, and returns deep if the text is nested in more than depth levels; 0 means any. It is for texts
// of strangers: it allocates nothing, takes time proportional to the text, and ends wherever the text is invalid.
func scan(text []byte, most, depth int) (values int, deep bool) {
	values = 1
	level := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = afterString(text, i); i < 0 {
				return values, false
			}
		case '{', '[':
			if level++; depth > 0 && level > depth {
				return values, true
			}
			values++
		case '}', ']':
			level--
		case ',':
			values++
		default:
			continue
		}
		if values > most {
			return values, false
		}
	}
	return values, false
}

// afterString returns the index of the quote that ends the string that begins at from; -1 if there is none.
func afterString(text []byte, from int) int {
	for i := from; ; {
		n := bytes.IndexByte(text[i+1:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}
