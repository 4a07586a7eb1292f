"""Code that all rooms share: Protocols, values that cross seams, draws and texts. Imports numpy and pyarrow only.

A module stands here if rooms that do not know one another need it; what one room alone opens stands in that room.
`types`, `deciding`, `assistant` and `world` are the seams; `draws` and `grid` make results the same bits; `texts` and
`content` keep words, `growing` has arrays to which more is added. Files of a run belong to `runfolder`, formats of
skillbooks to `skillbook`, prompts to `asking`.
"""
