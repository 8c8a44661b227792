import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';

export const Templates = graphql(`
  query Templates {
    saleTemplates {
      id
      name
      title
      itemCount
      lastsSeconds
      savedAt
      savedBy {
        displayName
      }
    }
  }
`);

export const SaveTemplate = graphql(
  `
  mutation SaveTemplate($input: SaveSaleTemplateInput!) {
    act: saveSaleTemplate(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const CreateFromTemplate = graphql(
  `
  mutation CreateFromTemplate($input: CreateSaleFromTemplateInput!) {
    act: createSaleFromTemplate(input: $input) {
      sale {
        id
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const DeleteTemplate = graphql(
  `
  mutation DeleteTemplate($input: DeleteSaleTemplateInput!) {
    act: deleteSaleTemplate(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
