package main

import (
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"
)

// Costs per operation, in microseconds of one core of the hardware of docs/performance.md.
const (
	costImage      = 1200.0 // of the API: an image captcha with the drawing of the next one, and the path token
	costProof      = 300.0  // of the API: a proof of work and the path token
	costOrder      = 90.0   // of the API and worker: an attempt that is accepted and written
	costSoldOut    = 42.0   // of the API: an attempt that is refused from memory
	costRedisBuyer = 30.0   // of the Redis core of the sale: captcha and path token
	costRedisOrder = 22.0   // of the same core: a reservation, its message and its acknowledgement
	costPostgres   = 17.0   // of Postgres: a stored order
	bytesSocket    = 35e3   // of API memory: a socket that follows a sale
	// planned is the share of a core that is planned: beyond it waits grow fast.
	planned = 0.6
	// redisShare is how much of one Redis core a sale may take; it cannot use a second.
	redisShare = 0.6
)

type capacityCmd struct {
	Buyers   float64       `default:"100000" help:"Buyers who come, such as 1e6."`
	Stock    float64       `default:"5000" help:"Units on sale."`
	Window   time.Duration `default:"10s" help:"Time within which the buyers come, evenly."`
	APICores int           `name:"api-cores" help:"Cores of all API processes; without it, as many as are needed."`
	Proof    bool          `help:"Challenges are proofs of work instead of images."`
	JSON     bool          `help:"Print JSON."`
}

// Help returns the examples.
func (capacityCmd) Help() string {
	return "Calculates the resources for an opening from measured costs, and simulates it. It reads no service.\n" +
		"docs/capacity.md has the costs and says how to measure your own.\n\n" +
		examples("seckill capacity --buyers 1e6 --stock 5e4 --window 60s", "seckill capacity --buyers 5000 --stock 200 --window 1s --api-cores 2 --json")
}

// capacity is the demand of an opening, and how it goes.
type capacity struct {
	APICores      int     `json:"apiCores"`      // at 60 %; of the simulation
	RedisLoad     float64 `json:"redisLoad"`     // of the one core that a sale can use
	PostgresCores float64 `json:"postgresCores"` // at 60 %
	SocketBytes   float64 `json:"socketBytes"`   // of all API processes
	First         string  `json:"saturatesFirst"`
	Inflow        int     `json:"inflow"` // buyers per second that the waiting room should admit; 0 = no limit is needed
	// Of the simulation.
	LongestWait time.Duration `json:"longestWaitNs"` // of a buyer, from the arrival to the answer of placeOrder
	Served      time.Duration `json:"servedNs"`      // from the opening until all buyers have their answer
}

// Run prints the capacity.
func (c capacityCmd) Run(call *call) error {
	if c.Buyers < 1 || c.Buyers > 1e9 || c.Stock < 1 || c.Stock > 1e9 || c.Window < time.Millisecond || c.Window > 24*time.Hour || c.APICores < 0 {
		return errors.New("capacity takes 1 to 1e9 buyers and units, and a window of 1ms to 24h")
	}
	result := c.calculate()
	if c.JSON {
		return printJSON(call.env.stdout, result)
	}
	w := tabwriter.NewWriter(call.env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "API cores\t%d\n", result.APICores)
	fmt.Fprintf(w, "Redis core of the sale\t%.0f %%\n", result.RedisLoad*100)
	fmt.Fprintf(w, "Postgres cores\t%.2f\n", result.PostgresCores)
	fmt.Fprintf(w, "memory for sockets\t%.1f GB\n", result.SocketBytes/1e9)
	fmt.Fprintf(w, "saturates first\t%s\n", result.First)
	if result.Inflow > 0 {
		fmt.Fprintf(w, "inflow limit\t%d buyers a second (setSaleSwitches): more than the Redis core of one sale takes\n", result.Inflow)
	}
	fmt.Fprintf(w, "longest wait of a buyer\t%s\n", result.LongestWait)
	fmt.Fprintf(w, "all answered after\t%s\n", result.Served)
	return w.Flush()
}

// calculate returns the demand of the opening.
func (c capacityCmd) calculate() capacity {
	seconds := c.Window.Seconds()
	orders := min(c.Buyers, c.Stock)
	api := (c.Buyers*c.challenge() + orders*costOrder + (c.Buyers-orders)*costSoldOut) / 1e6 / seconds
	out := capacity{
		APICores:      c.APICores,
		RedisLoad:     (c.Buyers*costRedisBuyer + orders*costRedisOrder) / 1e6 / seconds,
		PostgresCores: orders * costPostgres / 1e6 / seconds / planned,
		SocketBytes:   c.Buyers * bytesSocket,
		First:         "API cores",
	}
	if out.APICores == 0 {
		out.APICores = int(math.Ceil(api / planned))
	}
	if out.RedisLoad > api/float64(out.APICores) {
		out.First = "Redis core of the sale"
	}
	if out.RedisLoad > redisShare {
		out.Inflow = int(redisShare * 1e6 / (costRedisBuyer + costRedisOrder*orders/c.Buyers))
	}
	out.LongestWait, out.Served = c.simulate(out.APICores)
	return out
}

func (c capacityCmd) challenge() float64 {
	if c.Proof {
		return costProof
	}
	return costImage
}

// steps is the resolution of the simulation: parts of the window.
const steps = 1000

// simulate lets the buyers arrive in equal parts of the window and pass the API and the
// Redis core of the sale, each with a queue in order of arrival. The first buyers take the
// stock. It returns the longest time of a buyer and the time until the last answer.
func (c capacityCmd) simulate(cores int) (longest, served time.Duration) {
	part, each := c.Window.Seconds()/steps, c.Buyers/steps
	apiFree, redisFree, left := 0.0, 0.0, c.Stock // times in seconds at which a queue is empty
	worst := 0.0
	for i := range steps {
		now := float64(i) * part
		orders := min(each, left)
		left -= orders
		apiFree = max(apiFree, now) + (each*c.challenge()+orders*costOrder+(each-orders)*costSoldOut)/1e6/float64(cores)
		redisFree = max(redisFree, now) + (each*costRedisBuyer+orders*costRedisOrder)/1e6
		worst = max(worst, max(apiFree, redisFree)-now)
	}
	round := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Millisecond) }
	return round(worst), round(max(apiFree, redisFree))
}
