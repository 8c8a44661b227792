/** The texts of the element. Refusals have those of the server, in the language of the request. */
import type { Fault } from '../src/fault.ts';
import type { OrderStatus, Phase, StockLevel } from '../src/types.ts';

const english = {
  loading: 'Loading …',
  missing: 'There is no such sale.',
  opens: (time: string) => `Opens ${time}`,
  ends: (time: string) => `Ends ${time}`,
  left: (ms: number) => clock(ms, 'd'),
  item: 'Product',
  quantity: 'Quantity',
  usual: 'Usual price',
  leftUnits: (n: number) => `${n} left`,
  stock: { PLENTY: 'In stock', LOW: 'Almost gone', SOLD_OUT: 'Sold out' } as Partial<Record<StockLevel, string>>,
  signIn: 'Sign in',
  signingIn: 'Signing in …',
  signOut: 'Sign out',
  account: 'E-mail or phone number',
  password: 'Password',
  code: 'Authenticator code',
  register: 'Create an account',
  buy: 'Buy now',
  draw: 'Enter the draw',
  checking: 'A quick security check …',
  picture: 'Use a picture instead',
  send: 'Send',
  cancel: 'Cancel',
  again: 'Try again',
  sending: 'Sending your order …',
  slow: 'Still trying. You will not be charged twice.',
  room: 'You are in the waiting room. Keep this page open.',
  ahead: (n: number) => `Waiting room: ${n} ahead of you. Keep this page open.`,
  leave: 'Leave the waiting room',
  queue: 'Your unit is reserved. The order is being written …',
  toPay: 'Pay in time, else the unit goes to the next buyer.',
  order: 'Order',
  payWith: (name: string) => `Pay with ${name}`,
  toPayment: 'To the payment page',
  scan: 'Scan with the app of the provider',
  waitlist: 'To the waitlist',
  onWaitlist: 'You are on the waitlist.',
  inShop: 'Continue in the shop',
  passed: 'Your turn was not used in time.',
  status: {
    PAID: 'Paid. Thank you!', PENDING_PAYMENT: 'Not paid.', CANCELLED: 'Cancelled.', EXPIRED: 'Expired: it was not paid in time.', REFUNDING: 'A refund is under way.', REFUNDED: 'Refunded.',
  } as Record<OrderStatus, string>,
  phase: { ENDED: 'This sale is over.', CANCELLED: 'This sale was cancelled.', PAUSED: 'Paused by the shop. Buying resumes soon.', SOLD_OUT: 'Sold out. Units may return.' } as Partial<Record<Phase, string>>,
  fault: (fault: Fault) =>
    ({
      NETWORK: 'Cannot reach the shop.', UNAUTHENTICATED: 'Sign in first.', FORBIDDEN: 'Your account may not do this.', RATE_LIMITED: 'Too many requests. Try again in a moment.',
      OVERLOADED: 'The shop is very busy. Try again in a moment.', UNAVAILABLE: 'The shop does not respond. Try again in a moment.', TIMEOUT: 'The shop took too long to respond. You will not be charged twice.',
    })[fault.code as string] ?? 'Something went wrong in the shop.',
};

/** The texts of one language. */
export type Texts = typeof english;

const chinese: Texts = {
  loading: '加载中…',
  missing: '活动不存在。',
  opens: (time) => `${time} 开始`,
  ends: (time) => `${time} 结束`,
  left: (ms) => clock(ms, '天'),
  item: '商品',
  quantity: '数量',
  usual: '原价',
  leftUnits: (n) => `仅剩 ${n} 件`,
  stock: { PLENTY: '有货', LOW: '即将售罄', SOLD_OUT: '已售罄' },
  signIn: '登录',
  signingIn: '登录中…',
  signOut: '退出登录',
  account: '邮箱或手机号',
  password: '密码',
  code: '动态验证码',
  register: '注册账号',
  buy: '立即抢购',
  draw: '参与抽签',
  checking: '安全验证中…',
  picture: '改用图片验证',
  send: '提交',
  cancel: '取消',
  again: '重试',
  sending: '正在提交订单…',
  slow: '仍在重试，不会重复扣款。',
  room: '您已进入等候室，请勿关闭本页。',
  ahead: (n) => `等候室：前面还有 ${n} 人，请勿关闭本页。`,
  leave: '离开等候室',
  queue: '已抢到，正在生成订单…',
  toPay: '请在时限内支付，逾期将让给下一位买家。',
  order: '订单',
  payWith: (name) => `使用${name}支付`,
  toPayment: '前往支付页面',
  scan: '请用支付应用扫码',
  waitlist: '前往商城候补',
  onWaitlist: '您已在候补名单中。',
  inShop: '前往商城继续',
  passed: '购买机会已过期，未在时限内使用。',
  status: { PAID: '支付成功，感谢购买！', PENDING_PAYMENT: '待支付。', CANCELLED: '已取消。', EXPIRED: '已过期，未在时限内支付。', REFUNDING: '退款中。', REFUNDED: '已退款。' },
  phase: { ENDED: '活动已结束。', CANCELLED: '活动已取消。', PAUSED: '活动已暂停，稍后恢复。', SOLD_OUT: '已售罄，可能会有退回的库存。' },
  fault: (fault) =>
    ({
      NETWORK: '无法连接商城。', UNAUTHENTICATED: '请先登录。', FORBIDDEN: '您的账号无权进行此操作。', RATE_LIMITED: '请求过于频繁，请稍候。',
      OVERLOADED: '商城繁忙，请稍后重试。', UNAVAILABLE: '商城暂无响应，请稍后重试。', TIMEOUT: '商城响应超时，不会重复扣款。',
    })[fault.code as string] ?? '商城出现错误。',
};

/** A time span as days and clock. */
function clock(ms: number, day: string): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const two = (n: number): string => String(Math.floor(n)).padStart(2, '0');
  const days = Math.floor(seconds / 86_400);
  return `${days ? `${days} ${day} ` : ''}${two((seconds % 86_400) / 3_600)}:${two((seconds % 3_600) / 60)}:${two(seconds % 60)}`;
}

/** The texts of a language. */
export const textsOf = (language: 'en' | 'zh'): Texts => (language === 'zh' ? chinese : english);
