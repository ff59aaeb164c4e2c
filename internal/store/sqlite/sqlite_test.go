package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/sqlite"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

func open(t testing.TB, env storetest.Env) store.Store {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(env.Dir, "ayegate.db"), Now: env.Wall.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) { storetest.Run(t, open, storetest.Options{Restart: true}) }

func TestLostUpdatesAreCaught(t *testing.T) {
	s := open(t, storetest.Env{Dir: t.TempDir(), Wall: storetest.NewWall()})
	defer s.Close()
	storetest.CatchesLostUpdates(t, s)
}
