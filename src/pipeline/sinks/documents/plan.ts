import { createHash } from 'node:crypto'
import {
  comparePositions,
  type Delivery,
  type Position,
  type Receipt,
  SinkError,
  type Writing,
  writingWords,
} from '../sink.ts'
import { replacedBy } from '../writer-name.ts'
import { headOf } from './envelope.ts'
import type { HeldPositions } from './held-positions.ts'
import { type DocumentLayout, documentPath, embeddedAttribute, ownManifestPath } from './layout.ts'
import { documentOf, isListPath, wholePath } from './paths.ts'
import { type DocumentFile, documentFiles, type Making, treeFiles } from './planned-files.ts'
import {
  isInside,
  isSameWriting,
  MAX_MANIFEST_BYTES,
  manifestText,
  parseManifest,
  type SetManifest,
} from './set-manifest.ts'
import { type DocumentTree, ownerKey, ownerOf, type Standing } from './tree.ts'

/** What a delivery means for the files of a sink. */
export type DocumentPlan =
  | {
      readonly kind: 'write'
      /** The content is what stands there already; files that are missing or differ are mended. */
      readonly isSame: boolean
      /** Another sink of the inventory kept it there: the list is ours from now on. */
      readonly isTaken: boolean
      /** of the snapshot whose files they are: an earlier one, where the content is the same */
      readonly position: Position
      /** of the files */
      readonly paths: readonly string[]
      /** those of them at which nothing stood, and that of the manifest where there was none */
      readonly free: ReadonlySet<string>
      /** the others of them, and what goes */
      readonly there: Standing
      /** each file once, and the same ones whenever they are asked for; the manifest is not among them */
      files(): Iterable<DocumentFile>
      readonly manifest: DocumentFile
      /**
       * Written ahead of the files, so that none is forgotten where that is as far as it comes: the list of the former place, which names
       * this one; the former manifest (of no file where there is none), which names the new files besides.
       */
      readonly ahead: readonly DocumentFile[]
      /** owned until now, and no more */
      readonly removed: readonly string[]
      /** as those of a Receipt */
      readonly replaced?: string
      readonly kept?: number
      readonly places: FormerPlaces
    }
  /** What stands there is this snapshot, or a later one; nothing is written. */
  | { readonly kind: 'none'; readonly receipt: Receipt; readonly places: FormerPlaces }

/** Other places where a sink keeps an inventory, by a path template of before. */
export interface FormerPlaces {
  /** as that of a Receipt */
  readonly listedAt: string
  /** the lists there; empty as long as a complete snapshot does not stand at the new place */
  readonly lists: readonly string[]
  /** stays, whatever is in those lists */
  readonly current: ReadonlySet<string>
}

export interface PlanOptions {
  readonly layout: DocumentLayout
  readonly writer: string
  readonly tree: DocumentTree
  readonly held: HeldPositions
  /** `namespace/name` of the sink; absent: it has none */
  readonly sink?: string | undefined
  /** a plan is carried out as a whole or not at all, as by a commit; default: file by file */
  readonly isAtomic?: boolean
}

/**
 * Decides what becomes of the files of an inventory: which are written, and which of those that it owns go. Files that it does not own
 * are never touched.
 * @throws SinkError terminal, where a file is somebody else's or rows have no files
 */
export async function planDocuments(
  delivery: Delivery,
  options: PlanOptions,
  signal: AbortSignal,
): Promise<DocumentPlan> {
  const { layout, writer, tree, held, sink, isAtomic = false } = options
  const { writing } = delivery
  const path = ownManifestPath(layout, writing)
  const former = await readManifest(path, writing, tree, signal)
  // Of two sinks of one inventory each has an order of its own: who comes to a place takes it over.
  const isTaken = former?.writer === writer && former.sink !== undefined && former.sink !== sink
  if (former) {
    const position = held.of(writing, former.position)
    if (comparePositions(position, delivery.position) >= 0 && !isTaken) {
      const receipt = receiptOf({ ...former, position }, path, writer)
      const isWhole = receipt.conflict === undefined && former.complete && delivery.complete
      const places = placesLeft(delivery, { path, former, isWhole, current: new Set([...former.paths, path]) })
      return { kind: 'none', receipt: { ...receipt, listedAt: places.listedAt }, places }
    }
  }
  const isTree = rowsHaveFiles(delivery, layout, former)

  const fingerprint = fingerprintOf(layout, isTree)
  const { checksum, complete, generation } = delivery
  const isSame =
    former?.checksum === checksum &&
    former.complete === complete &&
    former.generation === generation &&
    former.layout === fingerprint
  // Equal content keeps the words of the snapshot that brought it, so that equal files stay equal.
  const head = isSame
    ? { ...headOf(delivery), position: former.position, exportedAt: former.exportedAt }
    : headOf(delivery)
  const making: Making = { delivery, layout, head, former: complete ? undefined : former, tree, signal }
  const {
    paths,
    partTotal,
    files,
    kept: keptRows,
  } = await (isTree ? treeFiles(making) : documentFiles(making, layout.template))
  const list = paths.find(isListPath)
  if (list !== undefined)
    throw new SinkError(
      'terminal',
      `${list} is the name of a list of files, which is kept beside documents: let no path template end in .manifest`,
    )
  const leftover = former?.leftover ?? []
  const owned = new Set([...(former?.paths ?? []), ...leftover])
  // What an incomplete snapshot does not name may be all that there is of some rows.
  const mayStray = complete && !former?.complete
  const strays = mayStray ? (await straysOf(paths, writing, tree, signal)).filter((one) => !owned.has(one)) : []
  const current = placesOf([...paths, path])
  const isPruned = prunes(layout, isTree)
  const goes = goesFrom(paths, complete && isPruned)
  const isGone = (one: string) => !current.has(one) && !isListPath(one)
  const gone = former?.paths.filter(isGone) ?? []
  const going = [...gone.filter(goes), ...leftover.filter(isGone), ...strays.filter(isGone)]
  const there = await tree.existing([...current, ...going], signal)
  const added = paths.filter((one) => !owned.has(one) && there.has(one))
  refuseObjectsOfOthers([...current], writing, there)
  await refuseListedByOthers(added, path, writing, tree, signal)
  const foreign = await perhapsOfOthers(leftover.filter(isGone), path, there, tree, signal)
  const removed = ofWriting(going, writing, there).filter((one) => !foreign.has(one))
  // It stood here when that was written down, and does not any more: it had moved, and nobody could write down where to.
  const lost = !former && delivery.formerList === path ? await listsOf(writing, { tree, sink }, signal) : []
  const left = placesLeft(delivery, { path, former, isWhole: complete, current })
  const places = complete ? { ...left, lists: [...left.lists, ...lost] } : left
  const movedTo = await standing(former?.movedTo ?? [], path, tree, signal)
  const kept = gone.filter((one) => !goes(one))
  const keptCount = complete ? 0 : isTree && isPruned ? kept.length : keptRows
  const { exportedAt } = head
  const { position } = delivery
  const replaced = replacedBy(writer, former?.writer)
  const manifest: SetManifest = {
    ...(isSame
      ? former
      : {
          writing,
          position,
          generation,
          exportedAt,
          complete,
          checksum,
          layout: fingerprint,
          writer,
          partTotal,
          ...(sink !== undefined && { sink }),
          ...(!isPruned && { prune: false }),
        }),
    paths: [...paths, ...kept].sort(),
    ...(sink !== undefined && former?.sink !== undefined && { sink }),
    ...(!isSame && movedTo.length > 0 && { movedTo }),
    ...(!isAtomic && !isSame && removed.length > 0 && { leftover: removed.toSorted() }),
  }
  const fresh = isAtomic ? [] : paths.filter((one) => !owned.has(one))
  // Before the first one is whole there is none: nothing, and not all.
  const none = { ...manifest, position: NEVER, complete: false, checksum: '', paths: [] }
  const ahead = { ...(former ?? none), leftover: [...leftover, ...fresh].sort() }
  const isAhead = former ? fresh.length > 0 : fresh.length > 1
  const moving = isAtomic || isSame ? [] : await namedAhead(delivery, path, options, signal)
  return {
    kind: 'write',
    isSame,
    isTaken,
    position: manifest.position,
    paths,
    free: new Set([...current].filter((one) => !there.has(one))),
    there,
    files,
    manifest: { path, text: manifestText(manifest) },
    ahead: [...moving, ...(isAhead ? [{ path, text: manifestText(ahead) }] : [])],
    removed,
    places,
    ...(replaced !== undefined && { replaced }),
    ...(keptCount > 0 && { kept: keptCount }),
  }
}

/** What a plan tells of its receipt. */
export const toldOf = ({
  replaced,
  kept,
  places: { listedAt },
}: DocumentPlan & { readonly kind: 'write' }): Pick<Receipt, 'replaced' | 'kept' | 'listedAt'> => ({
  listedAt,
  ...(replaced !== undefined && { replaced }),
  ...(kept !== undefined && { kept }),
})

/** What is taken away with an inventory; nothing where somebody wrote later. */
export async function planRemoval(
  writing: Writing,
  position: Position,
  { layout, tree, sink }: Pick<PlanOptions, 'layout' | 'tree' | 'sink'>,
  signal: AbortSignal,
  formerList?: string,
): Promise<readonly string[]> {
  const own = ownManifestPath(layout, writing)
  const text = await tree.read(own, MAX_MANIFEST_BYTES, signal)
  const { movedTo = [] } = parseManifest(text ?? '') ?? {}
  const document = documentPath(layout.template, writing, 0, layout.format)
  const removed =
    text === undefined
      ? await straysOf([document], writing, tree, signal)
      : await listedBy(own, { writing, position }, tree, signal)
  const lost = text === undefined ? await listsOf(writing, { tree, sink }, signal) : []
  const places = [...(formerList === undefined ? [] : [formerList]), ...movedTo, ...lost]
  return [...removed, ...(await filesAt(places, own, { writing, position }, { tree, sink }, signal))]
}

/** What is taken away of the places that an inventory has left, once all of it stands at its own. Asked when it was written. */
export async function planMove(
  delivery: Delivery,
  { places: { lists, current } }: DocumentPlan,
  { layout, tree, sink }: Pick<PlanOptions, 'layout' | 'tree' | 'sink'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (lists.length === 0 || layout.prune === false) return []
  const own = ownManifestPath(layout, delivery.writing)
  const isKept = ({ prune }: SetManifest) => prune === false
  const found = await filesAt(lists, own, delivery, { tree, sink, isKept }, signal)
  return found.filter((one) => !current.has(one))
}

interface PlaceFacts {
  /** of its own list */
  readonly path: string
  readonly former: SetManifest | undefined
  /** a complete snapshot stands there, or will */
  readonly isWhole: boolean
  readonly current: ReadonlySet<string>
}

/** What an incomplete snapshot left at a former place is not forgotten. */
function placesLeft({ formerList }: Delivery, { path, former, isWhole, current }: PlaceFacts): FormerPlaces {
  const before = isFormerList(formerList, path) ? [formerList] : []
  const [listedAt = path] = isWhole ? [] : before
  return { listedAt, lists: isWhole ? [...before, ...(former?.movedTo ?? [])] : [], current }
}

/** Whoever may write a status, or to the sink, may have written it. */
const isFormerList = (list: string | undefined, own: string): list is string =>
  list !== undefined && list !== own && isListPath(list) && isInside(list)

/**
 * The list of the place that is left, naming the one that files go to, where it does not yet: else nobody knew of that, should it end in
 * the middle.
 */
async function namedAhead(
  { formerList, writing, position }: Delivery,
  own: string,
  { tree, sink }: PlanOptions,
  signal: AbortSignal,
): Promise<readonly DocumentFile[]> {
  if (!isFormerList(formerList, own)) return []
  const manifest = parseManifest((await tree.read(formerList, MAX_MANIFEST_BYTES, signal)) ?? '')
  if (!manifest || !isOurs(manifest, { writing, position }) || !isOf(manifest, sink)) return []
  const { movedTo = [] } = manifest
  if (movedTo.includes(own)) return []
  return [{ path: formerList, text: manifestText({ ...manifest, movedTo: [...movedTo, own] }) }]
}

/** Those of some lists that are there. */
async function standing(lists: readonly string[], own: string, tree: DocumentTree, signal: AbortSignal) {
  const asked = lists.filter((one) => isFormerList(one, own))
  if (asked.length === 0) return []
  const there = await tree.existing(asked, signal)
  return asked.filter((one) => there.has(one))
}

/** A list that says nothing of its sink was written by a former version. */
const isOf = (manifest: SetManifest, sink: string | undefined): boolean =>
  manifest.sink === undefined || manifest.sink === sink

/**
 * All that this sink has at some places, and at those that it was on its way to from there; each list behind what it names. Where a list
 * is not there any more it was taken away when all had moved, and nobody could write down where to: it is looked for.
 */
async function filesAt(
  lists: readonly string[],
  own: string,
  what: Pick<Delivery, 'writing' | 'position'>,
  {
    tree,
    sink,
    isKept = () => false,
  }: Pick<PlanOptions, 'tree' | 'sink'> & { readonly isKept?: (manifest: SetManifest) => boolean },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const before = [...lists]
  const seen = new Set<string>()
  const found: string[] = []
  let isSearched = false
  for (let list = before.pop(); list !== undefined; list = before.pop()) {
    if (!isFormerList(list, own) || seen.has(list)) continue
    seen.add(list)
    const text = await tree.read(list, MAX_MANIFEST_BYTES, signal)
    if (text === undefined) {
      found.unshift(...(await straysOf([documentOf(list)], what.writing, tree, signal)))
      if (!isSearched) before.push(...(await listsOf(what.writing, { tree, sink }, signal)))
      isSearched = true
      continue
    }
    const manifest = parseManifest(text)
    if (!manifest || !isOf(manifest, sink) || isKept(manifest)) continue
    before.push(...(manifest.movedTo ?? []))
    // Those that lead on go last.
    found.unshift(...(await listedBy(list, what, tree, signal)))
  }
  return found
}

/** Lists of an inventory that say that they are of this sink: one that does not may be what another sink keeps. */
async function listsOf(
  writing: Writing,
  { tree, sink }: Pick<PlanOptions, 'tree' | 'sink'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (sink === undefined) return []
  const lists: string[] = []
  const add = (list: string, text: string | undefined) => {
    const manifest = parseManifest(text ?? '')
    if (manifest && isSameWriting(manifest.writing, writing) && manifest.sink === sink) lists.push(list)
  }
  if (tree.listsOf)
    for (const list of await tree.listsOf(ownerKey(writing), signal).catch(unlisted))
      add(list, await tree.read(list, MAX_MANIFEST_BYTES, signal))
  else for await (const [list, text] of tree.manifests(MAX_MANIFEST_BYTES, signal)) add(list, text)
  return lists
}

/** Files of an inventory where there is no list of them: somebody deleted it. Only what says itself whose it is. */
async function straysOf(
  paths: readonly string[],
  writing: Writing,
  tree: DocumentTree,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const [first] = paths
  if (!tree.partsOf || first === undefined) return []
  const whole = wholePath(first)
  const all = [whole, ...(await tree.partsOf(whole, signal).catch(unlisted))]
  const there = await tree.existing(all, signal)
  return all.filter((one) => there.get(one)?.owner === ownerKey(writing))
}

/** What a sink does not list is not tidied; what it cannot list now is for later. */
function unlisted(error: unknown): readonly string[] {
  if (error instanceof SinkError && error.errorClass !== 'transient') return []
  throw error
}

const isOurs = (manifest: SetManifest, { writing, position }: Pick<Delivery, 'writing' | 'position'>): boolean =>
  isSameWriting(manifest.writing, writing) && comparePositions(manifest.position, position) <= 0

/** Files that a list names, and the list itself, last; none where it is of somebody else, or later. */
async function listedBy(
  path: string,
  what: Pick<Delivery, 'writing' | 'position'>,
  tree: DocumentTree,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const manifest = parseManifest((await tree.read(path, MAX_MANIFEST_BYTES, signal)) ?? '')
  if (!manifest || !isOurs(manifest, what)) return []
  const { writing } = what
  const { leftover = [] } = manifest
  const files = [...manifest.paths, ...leftover].filter((one) => !isListPath(one))
  const there = await tree.existing(files, signal)
  const foreign = await perhapsOfOthers(leftover, path, there, tree, signal)
  return [...ofWriting(files, writing, there).filter((one) => !foreign.has(one)), path]
}

/** Whether each row has a file. Where nothing is said rows decide; no rows go the way that those before them went. */
function rowsHaveFiles(delivery: Delivery, layout: DocumentLayout, former: SetManifest | undefined): boolean {
  if (!layout.takesTrees || layout.mode === 'document') return false
  if (layout.mode !== undefined) return true
  if (delivery.itemCount > 0) return embeddedAttribute(delivery.rows()) !== undefined
  return former?.layout === fingerprintOf(layout, true)
}

/** Any snapshot is later. */
const NEVER: Position = { epoch: 0n, sequence: 0n }

const fingerprintOf = (layout: DocumentLayout, isTree: boolean): string =>
  createHash('sha256')
    .update(JSON.stringify([layout, isTree]))
    .digest('hex')
    .slice(0, 12)

/** @throws SinkError terminal, where it is somebody else's */
async function readManifest(path: string, writing: Writing, tree: DocumentTree, signal: AbortSignal) {
  const manifest = parseManifest((await tree.read(path, MAX_MANIFEST_BYTES, signal)) ?? '')
  if (manifest && !isSameWriting(manifest.writing, writing)) throw foreignFile(path, manifest.writing)
  return manifest
}

function foreignFile(path: string, owner: Writing): SinkError {
  return new SinkError(
    'terminal',
    `${path} belongs to ${writingWords(owner)}: nothing was written. Put {cluster}, {namespace} and {name} into the path template, so that nobody writes over others`,
  )
}

function receiptOf({ position, writer, exportedAt }: SetManifest, path: string, own: string): Receipt {
  const nothing = { position, written: 0, removed: 0, bytes: 0 }
  if (writer === own) return nothing
  return {
    ...nothing,
    // Whether it is silent or gone cannot be told from files.
    conflict: `${writer} writes under this identity and started later; its last snapshot is of ${exportedAt} (where it is gone for good, restart this agent, or delete ${path})`,
  }
}

/** The paths as a set. @throws SinkError terminal, where one of them is another, or a folder that another is in */
function placesOf(paths: readonly string[]): ReadonlySet<string> {
  const places = new Set(paths)
  const twice = places.size < paths.length && paths.find((one, i) => paths.indexOf(one) < i)
  const folder = paths.flatMap(foldersOf).find((one) => places.has(one))
  const found = twice || folder
  if (found)
    throw new SinkError('terminal', `${found} would be two files, or a file and a folder: change the path templates`)
  return places
}

const foldersOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, i, all) => all.slice(0, i + 1).join('/'))

/** Whether files that are written no more are to go. */
const prunes = (layout: DocumentLayout, isTree: boolean): boolean =>
  layout.prune ?? (isTree || !layout.template.includes('{generation}'))

/** Whether a file that is owned and written no more goes. What an incomplete snapshot does not name stays. */
function goesFrom(paths: readonly string[], isPruned: boolean) {
  const wholes = new Set(paths.map(wholePath))
  return (path: string): boolean => isPruned || wholes.has(wholePath(path))
}

/** Whatever our list says: a file that it names may have gone, and its name be taken by somebody else since. */
function refuseObjectsOfOthers(paths: readonly string[], writing: Writing, there: Standing): void {
  const own = ownerKey(writing)
  for (const path of paths) {
    const key = there.get(path)?.owner
    if (key === undefined || key === own) continue
    throw foreignFile(path, ownerOf(key) ?? { cluster: key, namespace: '', inventory: '' })
  }
}

/** Of files that are of no set any more, and of which nobody says whose they are: what others may have put there since. */
async function perhapsOfOthers(
  leftover: readonly string[],
  ownList: string,
  there: Standing,
  tree: DocumentTree,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const unsaid = leftover.filter((one) => there.has(one) && there.get(one)?.owner === undefined)
  if (unsaid.length === 0) return new Set()
  const listed = new Set<string>()
  let hasLists = false
  for await (const [list, text] of tree.manifests(MAX_MANIFEST_BYTES, signal)) {
    hasLists = true
    if (list !== ownList) for (const one of parseManifest(text)?.paths ?? []) listed.add(one)
  }
  return new Set(unsaid.filter((one) => !hasLists || listed.has(one)))
}

/** Those that are there and are nobody else's. */
const ofWriting = (paths: readonly string[], writing: Writing, there: Standing): string[] =>
  paths.filter((one) => there.has(one) && (there.get(one)?.owner ?? ownerKey(writing)) === ownerKey(writing))

/** A file that is there and not in our list: it may be left from the original, or be in the list of somebody, or of another sink. */
async function refuseListedByOthers(
  paths: readonly string[],
  ownList: string,
  writing: Writing,
  tree: DocumentTree,
  signal: AbortSignal,
): Promise<void> {
  if (paths.length === 0) return
  const wanted = new Set(paths)
  for await (const [list, text] of tree.manifests(MAX_MANIFEST_BYTES, signal)) {
    const manifest = list === ownList ? undefined : parseManifest(text)
    const path = manifest?.paths.find((one) => wanted.has(one))
    if (manifest === undefined || path === undefined) continue
    if (!isSameWriting(manifest.writing, writing)) throw foreignFile(path, manifest.writing)
    throw new SinkError(
      'terminal',
      `${path} is written by another sink of this inventory, whose list is ${list}: change one of the path templates, or delete the list where that sink is gone`,
    )
  }
}

/** All that a plan writes, the manifest last. */
export function* everyFile(plan: DocumentPlan & { readonly kind: 'write' }): Generator<DocumentFile> {
  yield* plan.files()
  yield plan.manifest
}
