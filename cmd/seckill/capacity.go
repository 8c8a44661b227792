package main

import (
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"
)

// costs are CPU times of one core per operation, in microseconds. The defaults are those of
// the hardware of test/bench/performance.md; docs/capacity.md has a table of them.
type costs struct {
	Image      float64 `default:"1550" help:"Of the API: an image captcha with the drawing of the next one, and the path token."`
	Proof      float64 `default:"380" help:"Of the API: a proof of work and the path token."`
	Order      float64 `default:"150" help:"Of the API and the worker: an attempt that is accepted and written."`
	SoldOut    float64 `default:"85" help:"Of the API: an attempt that is refused from memory."`
	RedisBuyer float64 `default:"34" help:"Of the Redis core of the sale: captcha and path token."`
	RedisOrder float64 `default:"32" help:"Of the same core: a reservation, its message and its acknowledgement."`
	Postgres   float64 `default:"68" help:"Of Postgres: a stored order."`
}

const (
	bytesSocket = 26e3 // of API memory: a socket that follows a sale
	// planned is the share of a core that is planned: beyond it waits grow fast.
	planned = 0.6
	// redisShare is how much of one Redis core a sale may take; it cannot use a second.
	redisShare = 0.6
)

type capacityCmd struct {
	Buyers   float64       `default:"100000" help:"Buyers who come, such as 1e6."`
	Stock    float64       `default:"5000" help:"Units on sale."`
	Window   time.Duration `default:"10s" help:"Time within which the buyers come, evenly."`
	APICores float64       `name:"api-cores" help:"Cores of all API processes; without it, as many as are needed."`
	Proof    bool          `help:"Challenges are proofs of work instead of images."`
	Paths    bool          `help:"The buyers have their path tokens already, as after seckill seed --paths."`
	Cost     costs         `embed:"" prefix:"cost-"`
	JSON     bool          `help:"Print JSON."`
}

func (capacityCmd) Help() string {
	return "Calculates the resources for an opening from measured costs, and simulates it. It reads no service.\n" +
		"docs/capacity.md has the costs, in microseconds, and says how to measure your own.\n\n" +
		examples("seckill capacity --buyers 1e6 --stock 5e4 --window 60s",
			"seckill capacity --buyers 5000 --stock 200 --window 1s --api-cores 2 --json")
}

// capacity is the demand of an opening, and how it goes.
type capacity struct {
	APICores      float64 `json:"apiCores"`      // at 60 %; of the simulation
	RedisLoad     float64 `json:"redisLoad"`     // of the one core that a sale can use
	PostgresCores float64 `json:"postgresCores"` // at 60 %
	SocketBytes   float64 `json:"socketBytes"`   // of all API processes
	First         string  `json:"saturatesFirst"`
	Inflow        int     `json:"inflow"` // buyers per second that the waiting room should admit; 0 = no limit is needed
	// Of the simulation.
	LongestWait time.Duration `json:"longestWaitNs"` // of a buyer, from the arrival to the answer of placeOrder
	Served      time.Duration `json:"servedNs"`      // from the opening until all buyers have their answer
}

func (c capacityCmd) Run(call *call) error {
	if c.Buyers < 1 || c.Buyers > 1e9 || c.Stock < 1 || c.Stock > 1e9 || c.Window < time.Millisecond ||
		c.Window > 24*time.Hour || c.APICores < 0 {
		return errors.New("capacity takes 1 to 1e9 buyers and units, and a window of 1ms to 24h")
	}
	result := c.calculate()
	if c.JSON {
		return printJSON(call.env.stdout, result)
	}
	w := tabwriter.NewWriter(call.env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "API cores\t%g\n", result.APICores)
	fmt.Fprintf(w, "Redis core of the sale\t%.0f %%\n", result.RedisLoad*100)
	fmt.Fprintf(w, "Postgres cores\t%.2f\n", result.PostgresCores)
	fmt.Fprintf(w, "memory for sockets\t%.1f GB\n", result.SocketBytes/1e9)
	fmt.Fprintf(w, "saturates first\t%s\n", result.First)
	if result.Inflow > 0 {
		fmt.Fprintf(w, "inflow limit\t%d buyers a second (setSaleSwitches): more than the Redis core of one sale takes\n",
			result.Inflow)
	}
	fmt.Fprintf(w, "longest wait of a buyer\t%s\n", result.LongestWait)
	fmt.Fprintf(w, "all answered after\t%s\n", result.Served)
	return w.Flush()
}

// calculate returns the demand of the opening.
func (c capacityCmd) calculate() capacity {
	seconds := c.Window.Seconds()
	orders := min(c.Buyers, c.Stock)
	api := (c.Buyers*c.challenge() + orders*c.Cost.Order + (c.Buyers-orders)*c.Cost.SoldOut) / 1e6 / seconds
	out := capacity{
		APICores:      c.APICores,
		RedisLoad:     (c.Buyers*c.redisBuyer() + orders*c.Cost.RedisOrder) / 1e6 / seconds,
		PostgresCores: orders * c.Cost.Postgres / 1e6 / seconds / planned,
		SocketBytes:   c.Buyers * bytesSocket,
		First:         "API cores",
	}
	if out.APICores == 0 {
		out.APICores = max(1, math.Ceil(api/planned))
	}
	if out.RedisLoad > api/out.APICores {
		out.First = "Redis core of the sale"
	}
	if out.RedisLoad > redisShare {
		out.Inflow = int(redisShare * 1e6 / (c.redisBuyer() + c.Cost.RedisOrder*orders/c.Buyers))
	}
	out.LongestWait, out.Served = c.simulate(out.APICores)
	return out
}

// challenge is what a buyer costs the API before the attempt.
func (c capacityCmd) challenge() float64 {
	switch {
	case c.Paths:
		return 0
	case c.Proof:
		return c.Cost.Proof
	}
	return c.Cost.Image
}

// redisBuyer is what a buyer costs Redis before the attempt.
func (c capacityCmd) redisBuyer() float64 {
	if c.Paths {
		return 0
	}
	return c.Cost.RedisBuyer
}

// steps is the resolution of the simulation: parts of the window.
const steps = 1000

// simulate lets the buyers arrive in equal parts of the window and pass the API and the
// Redis core of the sale, each with a queue in order of arrival. The first buyers take the
// stock. It returns the longest time of a buyer and the time until the last answer.
func (c capacityCmd) simulate(cores float64) (longest, served time.Duration) {
	part, each := c.Window.Seconds()/steps, c.Buyers/steps
	apiFree, redisFree, left := 0.0, 0.0, c.Stock // times in seconds at which a queue is empty
	worst := 0.0
	for i := range steps {
		now := float64(i) * part
		orders := min(each, left)
		left -= orders
		apiFree = max(apiFree, now) + (each*c.challenge()+orders*c.Cost.Order+(each-orders)*c.Cost.SoldOut)/1e6/cores
		redisFree = max(redisFree, now) + (each*c.redisBuyer()+orders*c.Cost.RedisOrder)/1e6
		worst = max(worst, max(apiFree, redisFree)-now)
	}
	round := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Millisecond) }
	return round(worst), round(max(apiFree, redisFree))
}
