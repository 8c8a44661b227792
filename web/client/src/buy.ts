/** A whole purchase as one call, with a captcha that needs no user interaction. */
import { solve } from './captcha/solve.ts';
import type { Client } from './client.ts';
import { CreateCaptcha } from './documents/server.ts';
import type { VariablesOf } from './operation.ts';
import { Purchase, type Answer, type Attempt } from './purchase.ts';
import { Refusal } from './session.ts';
import type { Challenge, Task } from './types.ts';

/** Maximum number of captchas per purchase: a path token may expire, or an answer may be late. */
const MAX_CHECKS = 5;

/** What to buy. */
export interface BuyInput {
  saleId: string;
  itemId: string;
  /** 1 without it. */
  quantity?: number;
}

/** Requests a captcha. Throws a Refusal or a Fault. */
export async function createCaptcha(client: Client, input: VariablesOf<typeof CreateCaptcha>['input']): Promise<Challenge> {
  const { createCaptcha: made } = await client.request(CreateCaptcha, { input });
  const failure = made?.userErrors[0];
  if (failure) throw new Refusal(failure);
  return made!.challenge!;
}

/** Answers a captcha of a sale by a proof of work. Throws a Refusal or a Fault. */
export async function answerByWork(client: Client, saleId: string, given: Challenge | null = null): Promise<Answer> {
  const fits = given?.kind === 'PROOF_OF_WORK' ? given : null;
  const challenge = fits ?? (await createCaptcha(client, { purpose: 'SECKILL', saleId, kind: 'PROOF_OF_WORK' }));
  return toAnswer(challenge, await solve(challenge.parameters ?? '{}'));
}

/** The answer to a challenge. */
export function toAnswer({ id, expiresAt, early }: Challenge, answer: string): Answer {
  return { challengeId: id, answer, expires: Date.parse(expiresAt), early };
}

/**
 * Buys: solves the captcha, waits in the waiting room, and follows the order task. Resolves to the task with
 * its order, or throws a Refusal or a Fault. `on` gets each state.
 */
export function buy(client: Client, { saleId, itemId, quantity = 1 }: BuyInput, on: (attempt: Attempt) => void = () => {}): Promise<Task> {
  const purchase = new Purchase(client, saleId);
  let checks = 0;
  let stop = (): void => {};
  return new Promise<Task>((resolve, reject) => {
    stop = purchase.attempt.subscribe((attempt) => {
      on(attempt);
      switch (attempt.step) {
        case 'check':
          if (++checks > MAX_CHECKS) return reject(attempt.failure ? new Refusal(attempt.failure) : new Error('too many captchas'));
          return void answerByWork(client, saleId, attempt.challenge).then((answer) => purchase.answer(answer), reject);
        case 'bought':
          return resolve(attempt.task);
        case 'refused':
          return reject(new Refusal(attempt.failure));
        case 'broken':
          return reject(attempt.fault);
      }
    });
    purchase.buy(itemId, quantity);
  }).finally(() => {
    stop();
    purchase.close();
  });
}
