/** Texts of the check of a draw, which are loaded with it. */
import { fill, textOr, type Values } from '../i18n/text';

const en = {
  'draw.how': 'Your browser computes your number again and compares it with what the shop says.',
  'draw.soon': 'The shop publishes its seed one minute after the opening. Check then.',
  'draw.again': 'Check again',
  'draw.gone': 'The shop no longer has your ticket of this draw, so there is nothing to compare.',
  'draw.insecure': 'This browser can compute it only over https.',
  'draw.right': 'The draw was fair to you',
  'draw.wrong': 'The draw does not match. Keep these values and ask the shop.',
  'draw.commitment': 'When you joined, before the opening, the shop had already committed to its seed. The commitment is unchanged.',
  'draw.commitmentNot': 'The commitment differs from the one that the shop published when you joined.',
  'draw.seed': 'The published seed fits the commitment.',
  'draw.seedNot': 'The published seed does not fit the commitment.',
  'draw.number': 'Your number follows from the seed and the random text of your browser. It is above {n} % of all possible numbers; the highest goes first.',
  'draw.numberNot': 'The shop gives you another number than the one that follows from the seed and the random text of your browser.',
  'draw.values': 'Values',
  'draw.valueCommitment': 'Commitment',
  'draw.valueSeed': 'Seed',
  'draw.valueNonce': 'Random text of your browser',
  'draw.valueNumber': 'Number by the shop',
  'draw.valueComputed': 'Number computed here',
};

const zh: Record<keyof typeof en, string> = {
  'draw.how': '由您的浏览器重新计算您的抽签号，并与店铺公布的结果比对。',
  'draw.soon': '随机种子在开抢一分钟后公布，届时即可核验。',
  'draw.again': '重新核验',
  'draw.gone': '店铺已不再保留您本次抽签的排队记录，无法比对。',
  'draw.insecure': '浏览器仅在 https 连接下才能计算。',
  'draw.right': '抽签结果核验一致',
  'draw.wrong': '抽签结果不一致。请保存以下数据并联系店铺。',
  'draw.commitment': '您在开抢前参与抽签时，店铺已公布种子承诺值，且至今未变。',
  'draw.commitmentNot': '承诺值与您参与抽签时店铺公布的不同。',
  'draw.seed': '公布的种子与承诺值相符。',
  'draw.seedNot': '公布的种子与承诺值不符。',
  'draw.number': '您的抽签号由种子和您浏览器的随机文本算出，号码越大越靠前：您的排位超过 {n}% 的参与者。',
  'draw.numberNot': '店铺给出的抽签号，与由种子和您浏览器的随机文本算出的不同。',
  'draw.values': '核验数据',
  'draw.valueCommitment': '承诺值',
  'draw.valueSeed': '种子',
  'draw.valueNonce': '您浏览器的随机文本',
  'draw.valueNumber': '店铺给出的抽签号',
  'draw.valueComputed': '本机算出的抽签号',
};

/** The texts by language. */
export const texts = { en, zh };

/** A text in the language in use. */
export function dt(key: keyof typeof en, values: Values = {}): string {
  return textOr(key, fill(en[key], values), values);
}
