// A marker that the server must never echo or log, and operations that send it in every input.
import { readdirSync, readFileSync } from 'node:fs';
import {
  buildSchema, isEnumType, isInputObjectType, isListType, isNonNullType, parse, typeFromAST,
} from 'graphql';
import { graphqlURL, password } from './server.mjs';

export const marker = 'm4rk3r-in-the-input';

const web = new URL('../../web/', import.meta.url);
const schemaDir = new URL('../../graph/schema/', import.meta.url);
const schemaText = readdirSync(schemaDir).filter((name) => name.endsWith('.graphqls')).sort().map((name) => readFileSync(new URL(name, schemaDir), 'utf8')).join('\n');
const schema = buildSchema(schemaText, { assumeValidSDL: true });

/** The documents of the shop, which run in every profile. */
export const operations = () =>
  Object.entries(JSON.parse(readFileSync(new URL('documents.json', web), 'utf8'))).map(([hash, text]) => {
    const [definition] = parse(text).definitions;
    return { hash, name: definition.name.value, definition };
  });

/** Returns variables of an operation with the marker where its type is valid, or everywhere. */
export const values = ({ definition }, fitting) =>
  Object.fromEntries(definition.variableDefinitions.map((v) => [v.variable.name.value, value(typeFromAST(schema, v.type), fitting)]));

const fits = { Int: 1, Float: 1, Boolean: false, DateTime: '2030-01-01T00:00:00.000Z', Decimal: '1.00', CurrencyCode: 'CNY' };

function value(type, fitting) {
  if (isNonNullType(type)) return value(type.ofType, fitting);
  if (isListType(type)) return [value(type.ofType, fitting)];
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).slice(0, type.isOneOf ? 1 : undefined);
    return Object.fromEntries(fields.map((field) => [field.name, value(field.type, fitting)]));
  }
  if (!fitting) return marker;
  if (isEnumType(type)) return type.getValues()[0].name;
  return fits[type.name] ?? marker;
}

/** Sends a document of the shop by its hash. */
export async function send(hash, variables, headers = {}) {
  const response = await fetch(graphqlURL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ variables, extensions: { persistedQuery: { version: 1, sha256Hash: hash } } }),
  });
  return response.json();
}

/** The authorization of an administrator, in a session of its own. */
export async function adminAuthorization() {
  const { hash } = operations().find((operation) => operation.name === 'Login');
  const body = await send(hash, { input: { account: 'admin@demo.example', password } });
  return `Bearer ${body.data.login.tokens.accessToken}`;
}

/** Returns the texts of a response that the server writes itself: errors, extensions and reasons, without data. */
export function serverTexts(answer) {
  if (Array.isArray(answer)) return answer.map(serverTexts);
  if (answer === null || typeof answer !== 'object') return [];
  return Object.entries(answer).map(([key, v]) => (['errors', 'extensions', 'userErrors', 'reason', 'error', 'close'].includes(key) || (key === 'payload' && answer.type === 'error') ? v : serverTexts(v)));
}
