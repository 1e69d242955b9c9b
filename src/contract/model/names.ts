import { InvalidNameError } from './errors.ts'

declare const brand: unique symbol
type Branded<T, B extends string> = T & { readonly [brand]: B }

/** The name of a cluster everywhere: the name of its ClusterConnection, a DNS subdomain of at most 253 characters. */
export type ClusterName = Branded<string, 'ClusterName'>

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Whether it is a DNS subdomain of at most 253 characters, as names of objects are. */
export function isClusterName(text: string): text is ClusterName {
  return text.length <= 253 && DNS_SUBDOMAIN.test(text)
}

/**
 * @throws InvalidNameError where the text is not a DNS subdomain (RFC 1123).
 */
export function parseClusterName(text: string): ClusterName {
  if (!isClusterName(text)) throw new InvalidNameError('cluster', text)
  return text
}

/** Turns any text, such as the name of a kubeconfig context, into the nearest cluster name. Never empty. */
export function clusterNameFrom(text: string): ClusterName {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/\.+/g, '.')
    .replace(/(^|\.)[-.]+|[-.]+($|\.)/g, '$1$2')
    .slice(0, 253)
    .replace(/[-.]+$/, '')
    .replace(/^[-.]+/, '')
  return parseClusterName(isClusterName(name) ? name : 'cluster')
}
