import { ocmKinds } from '#kinds'
import type { KubeClient } from '#kube'
import { registrationAdmission } from '#registration'
import type { WebhookOptions } from '#webhooks'
import { type ServedWebhooks, servedWebhooks } from '../served-webhooks.ts'
import type { WebhooksConfig } from '../webhooks-config.ts'
import type { HubLogger } from './run.ts'

/** Of the two objects that make the API server ask. */
export const WEBHOOKS_CONFIGURATION = 'clusterpulse-members'

export interface HubWebhooksOptions {
  readonly config: WebhooksConfig
  readonly hub: () => KubeClient
  readonly namespace: string
  readonly onWrite: NonNullable<WebhookOptions['onWrite']>
  readonly onRefused: NonNullable<WebhookOptions['onRefused']>
  readonly logger: HubLogger
}

/** Answers the API server of a hub on Kubernetes about members; whichever manager leads, each answers. */
export const hubWebhooks = ({ hub, ...options }: HubWebhooksOptions): ServedWebhooks =>
  servedWebhooks({
    ...options,
    kube: hub,
    rules: registrationAdmission,
    converters: ocmKinds.flatMap((kind) => kind.converters),
    conversions: ocmKinds.flatMap(({ converters, plural, group }) =>
      converters.length > 0 ? `${plural}.${group}` : [],
    ),
    configuration: {
      name: WEBHOOKS_CONFIGURATION,
      sorts: ['Mutating', 'Validating'],
      remedy: 'the component `members` of deploy/',
    },
  })
