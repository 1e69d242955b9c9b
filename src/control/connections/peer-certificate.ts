import type { Presented } from '#ingest'
import { type ClusterName, isClusterName } from '#model'

type Certificate = NonNullable<Presented['certificate']>

const URI = /^URI:clusterpulse:\/\/cluster\/(.*)$/
const COMMON_NAME = /^clusterpulse:cluster:(.*)$/

/**
 * The cluster a verified client certificate names: the URI clusterpulse://cluster/<name> among its names, or else the
 * common name clusterpulse:cluster:<name>.
 * @returns undefined where it names none, or more than one: then it says nothing of who speaks
 */
export function clusterOfCertificate({ subjectAltName, commonName }: Certificate): ClusterName | undefined {
  const named = alternativeNames(subjectAltName).flatMap((entry) => URI.exec(entry)?.[1] ?? [])
  const [cluster, ...more] = named.length > 0 ? named : [COMMON_NAME.exec(commonName)?.[1] ?? '']
  return cluster !== undefined && more.length === 0 && isClusterName(cluster) ? cluster : undefined
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
