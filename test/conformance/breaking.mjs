// What a schema breaks of another, by GraphQL Inspector: fields, values, types, arguments
// and interfaces that are gone or changed, and arguments that have become necessary.
import { buildSchema } from 'graphql';
import { CriticalityLevel, diff } from '@graphql-inspector/core';

export const broken = async (released, now) =>
  (await diff(buildSchema(released), buildSchema(now)))
    .filter((change) => change.criticality.level === CriticalityLevel.Breaking)
    .map((change) => change.message);
