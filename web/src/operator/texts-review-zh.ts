import type { reviewEn } from './texts-review';

/** Chinese texts of the review and preview of a sale. */
export const reviewZh: Record<keyof typeof reviewEn, string> = {
  'op.review': '审核内容',
  'op.noLimit': '不限',
  'op.default': '默认',
  'op.required': '需要',
  'op.notRequired': '不需要',
  'op.contactFact': '已验证的联系方式',
  'op.ageFact': '账号最短注册时长',
  'op.addressFact': '收货地址',
  'op.stockFact': '库存展示',
  'op.preview': '买家页面预览',
  'op.preview.how': '以已登录、尚未下单的买家身份展示，仅供预览，不可操作。',
  'op.preview.UPCOMING': '开抢前',
  'op.preview.LIVE': '抢购中',
  'op.preview.ENDED': '已结束',
  'op.shown': '具体数量',
  'op.hidden': '仅文字',
  'op.off': '直降 {percent}%',
  'op.total': '总金额',
  'op.above': '不低于日常价',
  'op.deep': '降价超过 70%',
};
