import { MessageCatalogue } from './table.ts'
import { apps, autoscaling, batch } from './tables/apps.ts'
import { certificates } from './tables/certificates.ts'
import { coordination, events, rbac } from './tables/control.ts'
import { core } from './tables/core.ts'
import { meta } from './tables/meta.ts'
import { pods } from './tables/pods.ts'
import { authentication, authorization } from './tables/reviews.ts'
import { claims, storage, volumes } from './tables/volumes.ts'

export const catalogue = new MessageCatalogue({
  core: { ...core, ...pods, ...volumes, ...claims },
  apps,
  autoscaling,
  authentication,
  authorization,
  batch,
  certificates,
  coordination,
  events,
  meta,
  rbac,
  storage,
})

const PACKAGES: Readonly<Record<string, string>> = {
  v1: 'core',
  'apps/v1': 'apps',
  'autoscaling/v1': 'autoscaling',
  'authentication.k8s.io/v1': 'authentication',
  'authorization.k8s.io/v1': 'authorization',
  'batch/v1': 'batch',
  'certificates.k8s.io/v1': 'certificates',
  'coordination.k8s.io/v1': 'coordination',
  'events.k8s.io/v1': 'events',
  'rbac.authorization.k8s.io/v1': 'rbac',
  'storage.k8s.io/v1': 'storage',
}

/** Kinds that every group has. */
const SHARED = ['Status', 'DeleteOptions']

/** The name of the message of a kind; undefined where we have no table for it. */
export function messageOf(apiVersion: string, kind: string): string | undefined {
  const id = SHARED.includes(kind) ? `meta.${kind}` : `${PACKAGES[apiVersion]}.${kind}`
  return catalogue.has(id) ? id : undefined
}
