package strictjson

// Tree returns src as Go values: map[string]any, []any, string, [Number], bool and nil. It is checked as by [Check]; Lax has no effect.
func Tree(src []byte, lim Limits) (any, error) {
	lim.Lax = false
	if err := Check(src, lim); err != nil {
		return nil, err
	}
	return tree(src, skipSpace(src, 0)), nil
}

// tree builds the value that starts at doc[at]; the check has bounded the recursion.
func tree(doc []byte, at int) any {
	switch doc[at] {
	case '{':
		object := map[string]any{}
		w, _ := walk(doc, at)
		for e, ok := w.next(); ok; e, ok = w.next() {
			object[unquote(e.name)] = tree(doc, e.at)
		}
		return object
	case '[':
		array := []any{}
		w, _ := walk(doc, at)
		for e, ok := w.next(); ok; e, ok = w.next() {
			array = append(array, tree(doc, e.at))
		}
		return array
	case '"':
		return unquote(doc[at+1 : skipString(doc, at)-1])
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	default:
		return number(doc[at:])
	}
}
