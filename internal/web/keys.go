package web

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/web/credential"
)

func keyRoutes() []route {
	add := post(humans, "/v1/keys", "addKey", "Makes an agent key or a human token. Its secret is told once.", (*exchange).addKey)
	add.records = "key.added"
	return []route{
		add,
		get(humans, "/v1/keys", "listKeys", "Lists agent keys and one's own human tokens, without their secrets.", (*exchange).listKeys),
		{
			method: http.MethodDelete, pattern: "/v1/keys/{id}", plane: humans, name: "revokeKey", records: "key.revoked",
			doc: "Ends a credential at once.", out: reflect.TypeFor[api.Key](),
			serve: (*exchange).revokeKey,
		},
	}
}

// addKey makes a credential for oneself or for an agent that is one's own or
// nobody's. With somebody else's, a person could ask as one and approve as the
// other (API-02, API-07). Whoever runs the server can make any, with its store in
// hand.
func (x *exchange) addKey(in api.KeyRequest) (api.NewKey, error) {
	class := credential.Class(in.Class)
	mine := class == credential.Human && in.For == x.human.ID
	if class == credential.Agent {
		a, ok := x.web.creds.AgentOf(in.For)
		if !ok {
			return api.NewKey{}, credential.ErrHolder
		}
		mine = a.Owner == "" || a.Owner == x.human.Subject()
	}
	if !mine && (class == credential.Human || class == credential.Agent) {
		return api.NewKey{}, newProblem(http.StatusForbidden, api.Forbidden,
			"You may make tokens for yourself and keys for your own agents. Nothing was made.")
	}
	k, text, err := x.web.creds.Add(x.r.Context(), credential.Person(x.human), credential.Spec{
		Class: class, For: in.For, Device: in.Device, Note: in.Note, Valid: in.ValidFor.Std(),
	})
	if err != nil {
		return api.NewKey{}, err
	}
	x.status = http.StatusCreated
	return api.NewKey{Key: keyView(k), Credential: text}, nil
}

func keyView(k credential.Key) api.Key {
	return api.Key{
		ID: k.ID, Class: string(k.Class), For: k.For, Device: k.Device, Note: k.Note,
		CreatedAt: k.Created, CreatedBy: k.CreatedBy, ExpiresAt: k.Expires,
	}
}

func (x *exchange) listKeys() (api.Keys, error) {
	keys, err := x.web.creds.Keys(x.r.Context())
	if err != nil {
		return api.Keys{}, err
	}
	out := api.Keys{Keys: []api.Key{}}
	for _, k := range keys {
		if x.sees(k) {
			out.Keys = append(out.Keys, keyView(k))
		}
	}
	return out, nil
}

// sees reports whether a person may know of a credential, and may end it: to
// take a right away from an agent is always the safe direction.
func (x *exchange) sees(k credential.Key) bool {
	return k.Class == credential.Agent || k.For == x.human.ID
}

func (x *exchange) revokeKey() error {
	id := x.r.PathValue("id")
	k, err := x.web.creds.Get(x.r.Context(), id)
	if err == nil && !x.sees(k) {
		err = store.ErrNotFound
	}
	if err == nil {
		err = x.web.creds.Revoke(x.r.Context(), credential.Person(x.human), id, "revoked over the API")
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return newProblem(http.StatusNotFound, api.NotFound, "There is no such credential.")
	case err != nil:
		return err
	}
	return x.answer(keyView(k))
}
