package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/ayegate/ayegate/api"
)

// params reads the query: only the names given, each once unless it may repeat
// ("status*").
func (x *exchange) params(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return nil, badQuery("The query cannot be read.")
	}
	for name, values := range q {
		switch {
		case slices.Contains(names, name+"*"):
		case !slices.Contains(names, name):
			return nil, badQuery("The query has a parameter that is not known here: " + strconv.QuoteToASCII(clipped(name)) + ".")
		case len(values) > 1:
			return nil, badQuery("The query names a parameter twice: " + strconv.QuoteToASCII(clipped(name)) + ".")
		}
	}
	return q, nil
}

func clipped(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func badQuery(detail string) *api.Problem {
	return newProblem(http.StatusBadRequest, api.BadRequest, detail)
}

// number reads a decimal number between 0 and most; absent is otherwise.
func number(q url.Values, name string, otherwise, most int64) (int64, error) {
	s := q.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most || strconv.FormatInt(n, 10) != s {
		return 0, badQuery(strconv.Quote(name) + " is a number from 0 to " + strconv.FormatInt(most, 10) + ".")
	}
	return n, nil
}
