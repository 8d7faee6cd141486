"""The parts of image_analyzer: the formats, the metadata, what stands out, what a model sees."""
