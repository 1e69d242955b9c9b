/**
 * One of the processes that share a fleet: each cluster has one owner, who has its log and its state and feeds its history.
 * All that is shared is how they divide it, so nobody needs to be asked.
 */
export interface OwnerPlace {
  /** 1 … `of` */
  readonly index: number
  /** how many there are */
  readonly of: number
}

/** Who owns everything alone. */
export const soleOwner: OwnerPlace = { index: 1, of: 1 }

/**
 * Which of so many owners has the cluster: the one with the highest hash of both, so that with one owner more only those
 * clusters move that go to the new one. The same in every version: logs on disk are divided by it.
 * @returns 1 … `of`
 */
export function ownerOf(cluster: string, of: number): number {
  if (of <= 1) return 1
  const name = hashOf(cluster)
  let [owner, best] = [1, -1]
  for (let index = 1; index <= of; index++) {
    const score = mixed(name ^ mixed(index))
    if (score > best) [owner, best] = [index, score]
  }
  return owner
}

/** Whether this process has the cluster. */
export const owns = ({ index, of }: OwnerPlace, cluster: string): boolean => ownerOf(cluster, of) === index

/** How people and metrics know an owner; undefined where there is one alone, who needs no name. */
export const ownerName = ({ index, of }: OwnerPlace): string | undefined => (of > 1 ? `owner-${index}` : undefined)

/** FNV-1a over UTF-16 units, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** The finalizer of MurmurHash3: every bit of the input moves every bit of the output. */
function mixed(value: number): number {
  let mix = value >>> 0
  mix = Math.imul(mix ^ (mix >>> 16), 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return (mix ^ (mix >>> 16)) >>> 0
}
