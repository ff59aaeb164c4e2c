package mcp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// metaServerInfo is where a modern result says who the server is.
const metaServerInfo = "io.modelcontextprotocol/serverInfo"

// errNotModern says that a server has answered server/discover with versions we
// share only in the legacy era.
var errNotModern = errors.New("the server speaks no modern revision that we speak")

// terms is what a connection was opened on.
type terms struct {
	about About
	meta  *introduction // nil in the legacy era
}

func (a *terms) aboutServer() About {
	if a == nil {
		return About{}
	}
	return a.about
}

// modern reports whether to try server/discover, legacy whether to try initialize.
func (t *Target) modern() bool { return t.Version == "" || t.Version.Era() == Modern }
func (t *Target) legacy() bool { return t.Version == "" || t.Version.Era() == Legacy }

// initializeParams introduces us to a legacy server.
func (t *Target) initializeParams() []byte {
	v := t.Version
	if v == "" {
		v = NewestLegacy
	}
	b := append([]byte(nil), `{"protocolVersion":`...)
	b = strictjson.AppendString(b, string(v))
	b = append(append(b, `,"capabilities":`...), t.Capabilities...)
	b = append(append(b, `,"clientInfo":`...), t.Info...)
	return append(b, '}')
}

// initialized reads the response to initialize.
func initialized(m Message) (About, error) {
	if m.Error != nil {
		return About{}, fmt.Errorf("initialize: %w", errorOf(m))
	}
	about := aboutFrom(m.Result)
	about.Version = Version(text(m.Result, "protocolVersion"))
	about.Info = object(m.Result, "serverInfo")
	known := about.Version.Supported() || about.Version == V20241105
	if !known || about.Version.Era() != Legacy {
		return About{}, fmt.Errorf("initialize: the server wants revision %q, which we do not speak that way", string(about.Version))
	}
	return about, nil
}

// discovered reads the response to server/discover.
func discovered(m Message) (About, error) {
	if m.Error != nil {
		return About{}, fmt.Errorf("server/discover: %w", errorOf(m))
	}
	about := aboutFrom(m.Result)
	about.Info = object(m.Result, "_meta", metaServerInfo)
	offers := texts(m.Result, "supportedVersions")
	for _, v := range Versions {
		if v.Era() == Modern && slices.Contains(offers, string(v)) {
			about.Version = v
			return about, nil
		}
	}
	return About{}, errNotModern
}

func aboutFrom(result []byte) About {
	return About{
		Capabilities: object(result, "capabilities"),
		Instructions: text(result, "instructions"),
		Raw:          result,
	}
}

// object returns a member that is an object, else nil.
func object(doc []byte, path ...string) []byte {
	v, ok := get(doc, path...)
	if !ok || v[0] != '{' {
		return nil
	}
	return v
}

// text returns a member that is a string, else the empty string.
func text(doc []byte, path ...string) string {
	v, ok := get(doc, path...)
	if !ok {
		return ""
	}
	s, err := strictjson.String(v)
	if err != nil {
		return ""
	}
	return s
}

// texts returns the strings of a member that is an array.
func texts(doc []byte, path ...string) (all []string) {
	v, ok := get(doc, path...)
	if !ok {
		return nil
	}
	_ = strictjson.Elements(v, strictjson.Limits{Bytes: len(v)}, func(_ int, item []byte) error {
		if s, err := strictjson.String(item); err == nil {
			all = append(all, s)
		}
		return nil
	})
	return all
}
