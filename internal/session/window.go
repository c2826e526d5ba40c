package session

// class is whose work a request is. People and residents come before what a registration has to
// catch up with; within a class everything keeps its order.
type class int

const (
	// people is work that somebody waits for.
	people class = iota
	// catchUp is what registrations and lists bring.
	catchUp
	classes
)

// window bounds how many requests are in flight to a connector, so that work for a hundred
// channels does not time out in a queue of its own making (semantics §13.24).
type window struct {
	size     int
	inFlight int
	waiting  [classes][]job
}

// job sends one request when its turn comes. It reports false where nothing was sent after all.
type job func() bool

// add lets a job wait for its turn.
func (w *window) add(c class, j job) { w.waiting[c] = append(w.waiting[c], j) }

// again gives a job its turn before all others of its class: it has been waiting longest.
func (w *window) again(c class, j job) { w.waiting[c] = append([]job{j}, w.waiting[c]...) }

// pump sends while there is room.
func (w *window) pump() {
	for w.inFlight < w.size {
		j := w.next()
		if j == nil {
			return
		}
		if j() {
			w.inFlight++
		}
	}
}

// next takes the job whose turn it is, nil where none waits.
func (w *window) next() job {
	for c := range w.waiting {
		if len(w.waiting[c]) > 0 {
			j := w.waiting[c][0]
			w.waiting[c] = w.waiting[c][1:]
			return j
		}
	}
	return nil
}

// drain gives everything that waits its turn at once: there is no connection, so that nothing can
// be sent, and whatever has its turn settles.
func (w *window) drain() {
	w.inFlight = 0
	for j := w.next(); j != nil; j = w.next() {
		j()
	}
}
