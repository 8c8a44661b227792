import type { noticesEn } from './notices-en';

/** Chinese texts of notices. */
export const noticesZh: Record<keyof typeof noticesEn, string> = {
  'notices.title': '通知设置',
  'notices.unverified': '验证邮箱后才能收到邮件通知。',
  'notices.MAIL': '邮件',
  'notices.HOOK': '消息',
  'notices.ORDER_PLACED': '下单成功',
  'notices.PAYMENT_DEADLINE': '付款提醒',
  'notices.WAITLIST_OFFER': '候补到货',
  'notices.REFUND': '退款',
  'notices.SALE_REMINDER': '开抢提醒',
  'notices.ADMITTED': '排队轮到您',
  'notices.PUSH': '浏览器通知',
  'push.turnOn': '在此设备上通知我',
  'push.on': '此设备已开启通知，关闭页面后也能收到。',
  'push.denied': '本店的通知已被禁止，请在浏览器设置中允许。',
  'push.unsupported': '当前浏览器不支持在关闭页面后接收通知。',
  'push.install': '如需在此设备上接收通知，请点击“分享”，选择“添加到主屏幕”，再从主屏幕打开本店，登录后开启通知。',
  'push.unreachable': '无法连接浏览器的推送服务，请稍后再试。',
  'push.devices': '接收通知的设备',
  'push.device': '{name}，{time} 开启',
  'push.here': '{name}（当前设备），{time} 开启',
  'push.unnamed': '未知浏览器',
  'push.remove': '移除',
  'push.removeName': '移除 {name}',
  'remind.PUSH': '将于 {time} 在您的设备上提醒您',
};
