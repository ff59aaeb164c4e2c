package sqlite

import (
	"container/list"
	"sync"

	"github.com/ayegate/ayegate/internal/approval"
)

// kept is a request as it is committed, or will be with the batch. It is never
// written to.
type kept struct {
	n    int64 // its row
	r    *approval.Request
	size int // bytes, about
}

// cacheSize bounds the bytes of the requests that the writer keeps, so that the
// next change of a request need not read it.
const cacheSize = 2 << 20

// cache keeps the requests that changed last, as they are committed. Only the
// writer puts requests in, so that no reader can put back an older one.
type cache struct {
	mu    sync.Mutex
	by    map[approval.ID]*list.Element
	order *list.List // of kept, the latest first
	size  int
}

func newCache() *cache {
	return &cache{by: make(map[approval.ID]*list.Element), order: list.New()}
}

func (c *cache) get(id approval.ID) (kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[id]
	if e == nil {
		return kept{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(kept), true
}

// hide leaves readers to the database while a transaction commits: from the commit
// on other queries see it, and no reading may be older than one before it.
func (c *cache) hide(touched map[approval.ID]kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range touched {
		c.drop(id)
	}
}

// change takes in what a transaction changed.
func (c *cache) change(touched map[approval.ID]kept, erased map[approval.ID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range erased {
		c.drop(id)
	}
	for id, k := range touched {
		c.drop(id)
		c.by[id] = c.order.PushFront(k)
		c.size += k.size
	}
	for c.size > cacheSize {
		c.drop(c.order.Back().Value.(kept).r.ID)
	}
}

func (c *cache) drop(id approval.ID) {
	if e := c.by[id]; e != nil {
		c.size -= e.Value.(kept).size
		c.order.Remove(e)
		delete(c.by, id)
	}
}
