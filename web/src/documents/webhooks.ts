import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';

export const EndpointParts = graphql(`
  fragment EndpointParts on WebhookEndpoint {
    id
    url
    description
    events
    state
    disabledReason
    failingSince
    formerSecretUntil
  }
`);

export const Endpoints = graphql(
  `
  query Endpoints {
    webhookEndpoints {
      ...EndpointParts
    }
  }
`,
  [EndpointParts],
);

export const Deliveries = graphql(`
  query Deliveries($endpointId: ID!, $after: String, $state: WebhookDeliveryState) {
    webhookDeliveries(endpointId: $endpointId, first: 50, after: $after, state: $state) {
      edges {
        node {
          id
          event
          subject
          payload
          state
          attempts
          statusCode
          error
          durationMs
          nextAttemptAt
          createdAt
          endedAt
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export const CreateEndpoint = graphql(
  `
  mutation CreateEndpoint($input: CreateWebhookEndpointInput!) {
    act: createWebhookEndpoint(input: $input) {
      secret
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const UpdateEndpoint = graphql(
  `
  mutation UpdateEndpoint($input: UpdateWebhookEndpointInput!) {
    act: updateWebhookEndpoint(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const RotateSecret = graphql(
  `
  mutation RotateSecret($input: RotateWebhookSecretInput!) {
    act: rotateWebhookSecret(input: $input) {
      secret
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const DeleteEndpoint = graphql(
  `
  mutation DeleteEndpoint($input: DeleteWebhookEndpointInput!) {
    act: deleteWebhookEndpoint(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ReplayDelivery = graphql(
  `
  mutation ReplayDelivery($input: ReplayWebhookDeliveryInput!) {
    act: replayWebhookDelivery(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const SendTest = graphql(
  `
  mutation SendTest($input: SendWebhookTestInput!) {
    act: sendWebhookTest(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ReplayEvents = graphql(
  `
  mutation ReplayEvents($input: ReplayWebhookEventsInput!) {
    act: replayWebhookEvents(input: $input) {
      replayed
      continueSince
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
