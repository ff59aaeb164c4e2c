package desk

import "context"

// Sweep runs the sweeper once.
func (d *Desk) Sweep(ctx context.Context) error { return d.sweep(ctx) }
