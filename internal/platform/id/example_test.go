package id_test

import (
	"fmt"

	"seckill/internal/platform/id"
)

// The id of a task is made before anything else. It carries the shard of its sale, so that Redis
// finds the task, and becomes the id of the order.
func ExampleNewTaskOf() {
	sale, item, user := id.New[id.Sale](), id.New[id.Item](), id.New[id.User]()
	task := id.NewTaskOf(sale, item, user)

	shard, err := id.TaskShard(task)
	fmt.Println(shard == id.ShardOf(sale), err)
	fmt.Println(id.MayBeOf(task, sale, item), id.IsOf(task, user))
	fmt.Println(task.Public()[4:] == id.Order(task).Public()[4:])
	// Output:
	// true <nil>
	// true true
	// true
}
