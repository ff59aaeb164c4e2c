package policy

import (
	"encoding/xml"
	"io"
	"strings"
)

// WriteJUnit writes results as JUnit XML, for continuous integration.
func WriteJUnit(w io.Writer, results []Result) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "policy", Tests: len(results)}
	for _, r := range results {
		c := testcase{Name: r.Case.Name, Class: "policy"}
		if !r.OK() {
			suite.Failures++
			var why strings.Builder
			if err := r.Verdict.Explain(&why); err != nil {
				return err
			}
			c.Failure = &failure{strings.Join(r.Faults, "; "), why.String()}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
