/** The client of a Seckill server. README.md has a purchase; `documents` has the typed documents. */
export { Client, createClient, type Parts } from './client.ts';
export { Http, type HttpOptions } from './http.ts';
export { PasswordSession, Refusal, signedOut, tokenSession, type Session } from './session.ts';
export { Fault, toFault, type FaultCode } from './fault.ts';
export { type Connection, type Sink } from './live.ts';
export { Clock, type Reading } from './clock.ts';
export { operation, type Doc, type Operation, type ResultOf, type VariablesOf } from './operation.ts';
export { answerByWork, buy, type BuyInput } from './buy.ts';
export { Purchase, type Answer, type Attempt, type Hooks, type Path } from './purchase.ts';
export { Waiting } from './waiting.ts';
export { checkDraw, verifyDraw, type DrawCheck, type DrawProof } from './fairness.ts';
export { drawEntry, type DrawEntry, type StoredTicket } from './tickets.ts';
export { followTask, isDecided } from './task.ts';
export { cancelOrder, followOrder, payAgain, payOrder, readOrder, type OrderPayload } from './order.ts';
export { solve } from './captcha/solve.ts';
export { kept, type Kept } from './storage.ts';
export type * from './types.ts';
export * as documents from './documents.ts';
