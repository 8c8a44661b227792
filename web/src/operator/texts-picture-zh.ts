import type { pictureEn } from './texts-picture';

/** Chinese texts about pictures of products. */
export const pictureZh: Record<keyof typeof pictureEn, string> = {
  'op.picture': '图片地址（可选）',
  'op.upload': '上传图片',
  'op.upload.choose': '选择文件',
  'op.pictureDrop': '也可将文件拖到此处，保存时上传。',
  'op.pictureDrop.undo': '不使用该文件',
  'op.picturePreview': '店内显示效果',
  'op.alt': '替代文本',
  'op.altHint': '供看不到图片的读者了解图片内容，例如“白色水壶，壶嘴细长弯曲”。不填则使用商品名称。',
  'op.altCount': '{n}/{most} 个字符',
  'op.altFact': '替代文本：{text}',
  'op.altNone': '无替代文本，使用商品名称',
  'op.cut': '裁剪为正方形',
  'op.cut.zoom': '缩放',
  'op.cut.x': '左右位置',
  'op.cut.y': '上下位置',
};
