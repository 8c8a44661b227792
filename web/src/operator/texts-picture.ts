/** Texts about pictures of products. */
export const pictureEn = {
  'op.picture': 'Image URL (optional)',
  'op.upload': 'Upload image',
  'op.upload.choose': 'Choose a file',
  'op.pictureDrop': 'Or drop a file here. It is uploaded when you save.',
  'op.pictureDrop.undo': 'Do not use this file',
  'op.picturePreview': 'As the shop shows it',
  'op.alt': 'Alternative text',
  'op.altHint': 'What should readers know without seeing the image? For example: “White kettle with a long, curved spout”. Without it, the name of the product is used.',
  'op.altCount': '{n} of {most} characters',
  'op.altFact': 'Alternative text: {text}',
  'op.altNone': 'No alternative text: the name of the product is used',
  'op.cut': 'Crop to a square',
  'op.cut.zoom': 'Zoom',
  'op.cut.x': 'Left to right',
  'op.cut.y': 'Top to bottom',
} as const;
