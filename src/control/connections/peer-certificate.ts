import { memberGroup, memberOfUser } from '#authority'
import type { PeerCertificate } from '#ingest'
import { type ClusterName, isClusterName } from '#model'

/** Whom a client certificate names, and by which rules. */
export interface NamedByCertificate {
  readonly cluster: ClusterName
  /** `member`: as Open Cluster Management writes it, and counts while the hub accepts the cluster; `cluster`: our own names */
  readonly as: 'member' | 'cluster'
}

/** Of every name that members' certificates hold. */
const MEMBER_PREFIX = 'system:open-cluster-management:'

const URI = /^URI:clusterpulse:\/\/cluster\/(.*)$/
const COMMON_NAME = /^clusterpulse:cluster:(.*)$/

/**
 * The cluster a verified client certificate names. A member's has the organisation
 * system:open-cluster-management:<cluster> and no other, as common name the same with :<agent> behind it, and no alternative names.
 * Every other one has the URI clusterpulse://cluster/<name> among its names, or else the common name clusterpulse:cluster:<name>.
 * @returns undefined where it names none, or more than one: then it says nothing of who speaks
 */
export function clusterOfCertificate(certificate: PeerCertificate): NamedByCertificate | undefined {
  const { subjectAltName, commonName, organizations } = certificate
  if ([commonName, ...organizations].some((name) => name.startsWith(MEMBER_PREFIX))) return memberOf(certificate)
  const named = alternativeNames(subjectAltName).flatMap((entry) => URI.exec(entry)?.[1] ?? [])
  const [cluster, ...more] = named.length > 0 ? named : [COMMON_NAME.exec(commonName)?.[1] ?? '']
  const isNamed = cluster !== undefined && more.length === 0 && isClusterName(cluster)
  return isNamed ? { cluster, as: 'cluster' } : undefined
}

// Compared whole: by a prefix the agent of cluster10 would speak for cluster1 (CVE-2026-4740).
function memberOf({ subjectAltName, commonName, organizations }: PeerCertificate): NamedByCertificate | undefined {
  const cluster = memberOfUser(commonName)?.cluster
  if (cluster === undefined || !isClusterName(cluster) || subjectAltName !== '') return undefined
  const [organization, ...more] = organizations
  return organization === memberGroup(cluster) && more.length === 0 ? { cluster, as: 'member' } : undefined
}

/**
 * The entries of a subjectAltName as Node writes it: joined by ", ", with the value of an entry as a JSON string where it
 * holds anything that could be taken for a separator. Splitting at commas would let one entry pass for two.
 */
function alternativeNames(text: string): readonly string[] {
  const entries: string[] = []
  for (const [, kind = '', quoted, bare = ''] of text.matchAll(
    /([A-Za-z][A-Za-z ]*):(?:"((?:[^"\\]|\\.)*)"|([^,]*))(?:, |$)/gy,
  )) {
    entries.push(`${kind}:${quoted ?? bare}`)
  }
  return entries
}
