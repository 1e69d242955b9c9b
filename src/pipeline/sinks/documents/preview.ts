import type { SinkPreview, Writing } from '../sink.ts'
import { type DocumentLayout, documentPath } from './layout.ts'
import { rowPaths } from './row-files.ts'

/** A made-up row, for examples. */
const SAMPLE = {
  targetNamespace: 'team-a',
  targetName: 'deployments',
  namespace: 'shop',
  name: 'web',
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: '5f0c8a4e-5a6e-4f6c-9d3b-2f1f4f0e7c11',
  attributes: {},
} as const

/** What a sink of documents would write for this inventory. @throws SinkError for a template that cannot be used */
export function previewDocuments(
  layout: DocumentLayout,
  writing: Writing,
  provisioningMode: string,
): SinkPreview & { readonly objectPath: string } {
  const objectPath = documentPath(layout.template, writing, 1, layout.format)
  const { mode = 'document', content, takesTrees, prune = true } = layout
  const isTree = mode !== 'document'
  const index = layout.indexTemplate ? [documentPath(layout.indexTemplate, writing, 1, layout.format)] : []
  const samplePaths = isTree ? [...rowPaths([SAMPLE], layout, writing, 1), ...index] : [objectPath]
  const isShared = !(isTree ? layout.rowTemplate : layout.template).includes('{cluster}')
  return {
    provisioningMode,
    serializationFormat: layout.format,
    objectPath,
    ...(takesTrees && { layout: { mode, content: isTree ? content : 'item', prune, samplePaths } }),
    ...(isShared && {
      warnings: ['the path has no {cluster}: a second cluster with an inventory of this name is refused'],
    }),
  }
}
