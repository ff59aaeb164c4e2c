package store

import (
	"sync"
	"time"
)

// Clock is the clock of a store that runs inside this process: UTC, without a
// monotonic reading, and never backwards.
//
// It shows the wall's time. While the wall is behind what was shown before, after
// somebody set it back, the clock goes on at half the pace until the wall has
// caught up: deadlines still come, and small corrections do not add up.
type Clock struct {
	wall func() time.Time

	mu   sync.Mutex
	last time.Time // the wall's reading, monotonic where it has one
	at   time.Time // what was shown
}

// NewClock makes a clock over wall that shows no time before at.
func NewClock(wall func() time.Time, at time.Time) *Clock {
	return &Clock{wall: wall, last: wall(), at: at.UTC().Round(0)}
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	reading := c.wall()
	if t := reading.UTC().Round(0); t.After(c.at) {
		c.at = t
	} else if passed := reading.Sub(c.last); passed > 0 {
		c.at = c.at.Add(passed / 2)
	}
	c.last = reading
	return c.at
}
