// Breaking changes between two schemas, by GraphQL Inspector: removed or changed fields,
// enum values, types, arguments and interfaces, and arguments that became required.
import { buildSchema } from 'graphql';
import { CriticalityLevel, diff } from '@graphql-inspector/core';

export const breakingChanges = async (released, now) =>
  (await diff(buildSchema(released), buildSchema(now)))
    .filter((change) => change.criticality.level === CriticalityLevel.Breaking)
    .map((change) => change.message);
