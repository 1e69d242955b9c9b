import type { ApiObject } from '#apiserver'
import { minutes } from '#model'
import { businessApps } from '../objects/apps.ts'
import { condition, timestamp } from '../objects/meta.ts'
import type { World } from './world.ts'

const days = (n: number) => minutes(n * 24 * 60)

/** of a certificate; cert-manager renews it when a third is left */
const LIFE_MS = days(90)

/** The certificates that cert-manager keeps on a cluster: one per application that speaks to the outside. */
export function certificateObjects({ scenario, namespaces }: World, now: number): ApiObject[] {
  const apps = Object.entries(businessApps).filter(([namespace]) => namespaces.has(namespace))
  return apps.flatMap(([namespace, names], place) =>
    names.slice(0, 2).map((app, index) => {
      // Spread over their lives; one issuer of a cluster has forgotten one of them.
      const issuedAt = now - ((place * 37 + index * 11) % 60) * days(1) - minutes(7)
      const isForgotten = place === 2 && index === 0
      const notAfter = isForgotten ? now + days(6) : issuedAt + LIFE_MS
      return certificate(`${app}.${scenario.name}.example.com`, { namespace, app, issuedAt, notAfter, isForgotten })
    }),
  )
}

interface Life {
  readonly namespace: string
  readonly app: string
  readonly issuedAt: number
  readonly notAfter: number
  readonly isForgotten: boolean
}

function certificate(host: string, { namespace, app, issuedAt, notAfter, isForgotten }: Life): ApiObject {
  const ready = { reason: isForgotten ? 'Failed' : 'Ready', message: readyMessage(isForgotten) }
  return {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: {
      name: `${app}-tls`,
      namespace,
      creationTimestamp: timestamp(issuedAt),
      labels: { 'app.kubernetes.io/name': app },
    },
    spec: {
      secretName: `${app}-tls`,
      dnsNames: [host],
      issuerRef: {
        name: namespace === 'ci' ? 'internal-ca' : 'letsencrypt',
        kind: 'ClusterIssuer',
        group: 'cert-manager.io',
      },
    },
    status: {
      notBefore: timestamp(issuedAt),
      notAfter: timestamp(notAfter),
      renewalTime: timestamp(notAfter - LIFE_MS / 3),
      revision: 1,
      conditions: [condition('Ready', !isForgotten, issuedAt, ready)],
    },
  }
}

const readyMessage = (isForgotten: boolean): string =>
  isForgotten ? 'the order was refused: the account has too many of them' : 'the certificate is up to date'
