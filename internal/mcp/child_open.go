package mcp

import (
	"context"
	"time"
)

// openChild starts a server and finds out how to talk to it. A process that
// died of a question it did not know is started again and asked in the old way.
func openChild(ctx context.Context, t Target) (*Child, error) {
	c, err := startChild(ctx, t)
	if err != nil {
		return nil, err
	}
	err = c.greet(ctx)
	if err != nil && c.Err() != nil && t.modern() && t.legacy() && ctx.Err() == nil {
		t.Log.Debug("server ended on server/discover, starting it again", "reason", err)
		_ = c.Close()
		if c, err = startChild(ctx, t); err != nil {
			return nil, err
		}
		err = c.initialize(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// greet asks server/discover first, and on any error or on silence initialize.
// Silence may mean that a server is slow to start: which of the two it answers
// then decides.
func (c *Child) greet(ctx context.Context) error {
	if !c.t.modern() {
		return c.initialize(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	probe := make(chan error, 1)
	c.spawn(func() { probe <- c.discover(ctx) })
	silence := time.NewTimer(c.t.Probe)
	defer silence.Stop()
	select {
	case err := <-probe:
		if err == nil || c.Err() != nil || !c.t.legacy() {
			return err
		}
		c.t.Log.Debug("server is not modern", "reason", err)
		return c.initialize(ctx)
	case <-silence.C:
	}
	if !c.t.legacy() {
		return <-probe
	}
	refusal := c.initialize(ctx)
	if refusal == nil {
		return nil
	}
	silence.Reset(c.t.Probe)
	select {
	case err := <-probe:
		if err == nil {
			return nil
		}
	case <-silence.C:
	}
	return refusal
}

func (c *Child) discover(ctx context.Context) error {
	meta := newIntroduction(NewestModern, c.t)
	m, err := c.call(ctx, meta, methodDiscover, nil, nil)
	if err != nil {
		return err
	}
	about, err := discovered(m)
	if err != nil {
		return err
	}
	c.terms.CompareAndSwap(nil, &terms{about, newIntroduction(about.Version, c.t)})
	return nil
}

func (c *Child) initialize(ctx context.Context) error {
	m, err := c.call(ctx, nil, methodInitialize, c.t.initializeParams(), nil)
	if err != nil {
		return err
	}
	about, err := initialized(m)
	if err != nil {
		return err
	}
	if !c.terms.CompareAndSwap(nil, &terms{about: about}) {
		return nil
	}
	return c.Notify(ctx, methodInitialized, nil)
}
