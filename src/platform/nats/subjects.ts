/**
 * A name of Kubernetes as one token of a subject. A dot would divide it, so it becomes an underscore, which no such name has: the
 * way back is as plain.
 */
export const subjectToken = (cluster: string): string => cluster.replaceAll('.', '_')

/** Whether a filter of a stream, which may have wildcards, covers the subject. @see NATS documentation, "Subject-Based Messaging" */
export function coversSubject(filter: string, subject: string): boolean {
  const [wanted, given] = [filter.split('.'), subject.split('.')]
  for (const [i, token] of wanted.entries()) {
    if (token === '>') return i === wanted.length - 1 && given.length > i
    if (i >= given.length || (token !== '*' && token !== given[i])) return false
  }
  return wanted.length === given.length
}
