package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the programs of the tests: under the name ayegate it is
// the shipped program, from the same main, and under the other names it is what a
// real agent and real servers do.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ayegate":        main,
		"ayegate-mortal": mortalMain,
		"agent":          agentMain,
		"oracle":         oracleMain,
		"tamper":         tamperMain,
	})
}

// here is the environment of a program of a test: quick to end under the race
// detector, without colours, and with a home of its own.
func here(home string) []string {
	return append(os.Environ(), "GORACE=atexit_sleep_ms=0", "NO_COLOR=1", "HOME="+home, "AYEGATE_HOME="+home+"/ayegate")
}
