import type { ReactNode } from 'react'
import { PageHeading } from '../../shell/page-heading.tsx'
export function EditorPage({ isNew }: { isNew: boolean }): ReactNode {
  return <PageHeading title="Declare a type">{isNew ? 'Declare a type' : 'Edit a declaration'}</PageHeading>
}
