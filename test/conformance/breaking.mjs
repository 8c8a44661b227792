// What a schema breaks of another: fields, values, types and arguments that are gone
// or changed, and arguments that have become necessary.
import { buildSchema, findBreakingChanges } from 'graphql';

export const broken = (released, now) =>
  findBreakingChanges(buildSchema(released), buildSchema(now)).map((change) => change.description);
