// What the examples share: the server, the documents of a purchase, and the solution of
// a proof of work. Nothing here depends on a GraphQL client.

const { SECKILL_URL = 'http://localhost:8080', SECKILL_ACCOUNT = 'alice@demo.example', SECKILL_PASSWORD = 'flash-sale-demo' } = process.env;

export const endpoint = `${SECKILL_URL}/graphql`;
export const socketEndpoint = endpoint.replace(/^http/, 'ws');
export const credentials = { account: SECKILL_ACCOUNT, password: SECKILL_PASSWORD };

export const login = `mutation Login($input: LoginInput!) {
  login(input: $input) { tokens { accessToken } userErrors { code message } }
}`;

export const sales = `query Sales {
  sales(first: 20) { edges { node { id title phase items { id goods { name } } } } }
}`;

export const createCaptcha = `mutation CreateCaptcha($input: CreateCaptchaInput!) {
  createCaptcha(input: $input) { challenge { id parameters } userErrors { code message } }
}`;

export const issuePath = `mutation IssuePath($input: IssueSeckillPathInput!) {
  issueSeckillPath(input: $input) { path { token } ticket { id } userErrors { code message } }
}`;

export const placeOrder = `mutation PlaceOrder($input: PlaceOrderInput!) {
  placeOrder(input: $input) { orderTask { id status } userErrors { code message } }
}`;

export const orderTaskStatus = `subscription OrderTaskStatus($id: ID!) {
  orderTaskStatus(orderTaskId: $id) { kind orderTask { id status revision order { number status } failure { code } } }
}`;

/** Returns the payload of a mutation, or throws its first user error. */
export function accepted(payload) {
  const [error] = payload.userErrors;
  if (error) throw new Error(`${error.code}: ${error.message}`);
  return payload;
}

/** Returns the number that solves a proof of work. A page does this in a worker. */
export async function solve(parameters) {
  const { salt, challenge, maxNumber } = JSON.parse(parameters);
  const encoder = new TextEncoder();
  for (let n = 0; n <= maxNumber; n++) {
    const hash = await crypto.subtle.digest('SHA-256', encoder.encode(salt + n));
    if (Buffer.from(hash).toString('hex') === challenge) return String(n);
  }
  throw new Error('the challenge has no solution');
}

/**
 * Buys one unit of the first live sale and prints each state of the order task.
 *
 * client.execute(document, variables) resolves to the data of a query or mutation,
 * client.subscribe(document, variables, next) calls next with the data of each event and
 * resolves when the server completes the subscription, and client.token is the access
 * token of later requests.
 */
export async function buy(client) {
  const signedIn = accepted((await client.execute(login, { input: credentials })).login);
  client.token = signedIn.tokens.accessToken;

  const { edges } = (await client.execute(sales)).sales;
  const sale = edges.map((edge) => edge.node).find((node) => node.phase === 'LIVE');
  if (!sale) throw new Error('no sale is live');
  const itemId = sale.items[0].id;
  console.log(`buy ${sale.items[0].goods.name} in ${sale.title}`);

  const { challenge } = accepted((await client.execute(createCaptcha, { input: { purpose: 'SECKILL', saleId: sale.id, kind: 'PROOF_OF_WORK' } })).createCaptcha);
  const captcha = { challengeId: challenge.id, answer: await solve(challenge.parameters) };
  const { path } = accepted((await client.execute(issuePath, { input: { itemId, captcha } })).issueSeckillPath);
  if (!path) throw new Error('the buyer is in the waiting room: follow queuePosition until it has the path token');

  // Keep the key until the outcome is known: a retry with the same key does not buy twice.
  const input = { itemId, pathToken: path.token, idempotencyKey: crypto.randomUUID() };
  const { orderTask } = accepted((await client.execute(placeOrder, { input })).placeOrder);
  await client.subscribe(orderTaskStatus, { id: orderTask.id }, ({ orderTaskStatus: { kind, orderTask: task } }) => {
    console.log(kind, task.status, task.order?.number ?? task.failure?.code ?? '');
  });
}
