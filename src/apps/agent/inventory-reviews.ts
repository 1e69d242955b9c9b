import type { KubeClient } from '#kube'
import type { Logger } from '#runtime'
import { knownOf } from '../inventory-config.ts'
import type { CollectionSettings } from '../inventory-settings.ts'
import { INVENTORY_WEBHOOKS, inventoryRules } from '../inventory-webhooks.ts'
import { type ServedWebhooks, servedWebhooks } from '../served-webhooks.ts'
import type { AgentConfig } from './config.ts'

export interface InventoryReviewsOptions {
  readonly webhooks: NonNullable<AgentConfig['webhooks']>
  readonly settings: CollectionSettings
  readonly kube: KubeClient
  readonly logger: Logger
  readonly signal: AbortSignal
}

/**
 * Answers the API server about objects of inventory, in every replica: its configuration does not wait for us, and what we would refuse is
 * refused by reconcilers too.
 */
export async function answerReviews(options: InventoryReviewsOptions): Promise<ServedWebhooks> {
  const { webhooks: asked, settings, kube, logger, signal } = options
  const { namespace, ...config } = asked
  const webhooks = servedWebhooks({
    ...{ config, namespace, logger },
    kube: () => kube,
    rules: inventoryRules(knownOf(settings)),
    configuration: { name: INVENTORY_WEBHOOKS, sorts: ['Validating'], remedy: 'deploy/inventory' },
  })
  await webhooks.part.start(signal)
  return webhooks
}
