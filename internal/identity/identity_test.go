package identity_test

import (
	"testing"

	"github.com/ayegate/ayegate/internal/identity"
)

func TestZeroValuesAreNobody(t *testing.T) {
	if !(identity.Agent{}).IsZero() || !(identity.Human{}).IsZero() {
		t.Error("a zero value must be nobody")
	}
	if !(identity.Human{ID: "ana"}).IsZero() {
		t.Error("a person who proved nothing may not decide")
	}
	if (identity.Human{ID: "ana", Strength: identity.Token}).IsZero() || (identity.Agent{ID: "bot"}).IsZero() {
		t.Error("verified ones are somebody")
	}
}

func TestMembership(t *testing.T) {
	ana := identity.Human{ID: "ana", Groups: []string{"db-admins"}}
	for subject, want := range map[string]bool{
		"user:ana": true, "group:db-admins": true,
		"user:Ana": false, "user:anab": false, "user:": false, "group:": false, "group:db": false,
		"ana": false, "db-admins": false, "": false, "group:ana": false, "user:db-admins": false,
	} {
		if got := ana.In(subject); got != want {
			t.Errorf("In(%q) = %v, want %v", subject, got, want)
		}
	}
	if ana.Subject() != "user:ana" {
		t.Error(ana.Subject())
	}
}

func TestStrengthsHaveNames(t *testing.T) {
	for s, want := range map[identity.Strength]string{
		identity.Unproven: "unproven", identity.Token: "token", identity.Session: "session", identity.Passkey: "passkey", 99: "unproven",
	} {
		if s.String() != want {
			t.Errorf("%d is %q, want %q", s, s, want)
		}
	}
}
