package sqlite_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

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

var kills = flag.Int("kills", 300, "how many processes TestCrash kills")

func TestMain(m *testing.M) {
	storetest.CrashMain(context.Background(), openIn)
	os.Exit(m.Run())
}

func openIn(ctx context.Context, dir string) (store.Store, error) {
	return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "ayegate.db"), Now: time.Now})
}

func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds; run without -short")
	}
	storetest.Crash(t, openIn, *kills)
}

func TestContract(t *testing.T) { storetest.Run(t, open, storetest.Options{Restart: true}) }

func TestLostUpdatesAreCaught(t *testing.T) {
	s := open(t, storetest.Env{Dir: t.TempDir(), Wall: storetest.NewWall()})
	defer s.Close()
	storetest.CatchesLostUpdates(t, s)
}
