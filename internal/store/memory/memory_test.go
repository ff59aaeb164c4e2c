package memory_test

import (
	"testing"

	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

func open(t testing.TB, env storetest.Env) store.Store {
	s, err := memory.Open(memory.Config{Now: env.Wall.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) { storetest.Run(t, open, storetest.Options{}) }

func TestLostUpdatesAreCaught(t *testing.T) {
	s := open(t, storetest.Env{Wall: storetest.NewWall()})
	defer s.Close()
	storetest.CatchesLostUpdates(t, s)
}
