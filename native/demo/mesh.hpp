// Triangles, and the few ways this scene makes them: everything curved is a function of (u, v) on a grid.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vector.hpp"

namespace splatmeter::demo {

enum class Material : std::uint16_t {
    wood,
    cloth,
    glaze,
    stem,
    leaf,
    petal,
    flower_centre,
    paint,
    iron,
    stone,
    terracotta,
    soil,
    bark,
    fruit,
    china,
    wall,
    roof,
    chimney,
    hedge,
    car_paint,
    glass,
    tyre,
    lantern,
    awning,
    water,
    paving,  // of the city
};

enum class Gathering : std::uint8_t {
    each_vertex,
    once
};  // of indirect light; once is for leaves and other small things

struct Vertex {
    Vec3 position, normal;
    float u = 0, v = 0;
    std::uint32_t light_of = 0;  // the vertex whose indirect light it shows: itself, or one for the whole patch
    Gathering gathering = Gathering::each_vertex;
};

struct Triangle {
    std::uint32_t a, b, c;
    Material material;
    std::uint16_t variant;  // which of its kind: shifts colours and patterns
};

struct Surface {
    Material material;
    std::uint16_t variant = 0;
};

struct Mesh {
    std::vector<Vertex> vertices;
    std::vector<Triangle> triangles;
};

using Patch = std::function<Vec3(float u, float v)>;
using Curve = std::function<Vec3(float t)>;

// A curved sheet over [0, 1]^2, smooth normals along du x dv.
void add_patch(Mesh& mesh, Surface surface, int columns, int rows, const Patch& patch,
               Gathering gathering = Gathering::each_vertex);

// One flat convex polygon; corners run counter-clockwise as seen from outside.
void add_face(Mesh& mesh, Surface surface, std::span<const Vec3> corners);

// A convex outline (local x, z) extruded to both sides along local y.
void add_extrusion(Mesh& mesh, Surface surface, Vec3 origin, const Frame& frame, std::span<const Vec3> outline,
                   float half_depth);

// Turned on a vertical axis: profile(t) gives (radius, unused, height) with the outside to its right going up.
void add_lathe(Mesh& mesh, Surface surface, Vec3 base, int sides, int rows, const Curve& profile);

// A rod along a curve that nowhere runs parallel to `reference`.
void add_tube(Mesh& mesh, Surface surface, const Curve& curve, Vec3 reference, float radius, int sides, int rows);

// A ball squeezed by `radii` and dented by noise of the given strength.
void add_blob(Mesh& mesh, Surface surface, Vec3 centre, Vec3 radii, float dents, int sides,
              Gathering gathering = Gathering::each_vertex);

// A pointed, cupped sheet from `base` along frame.ahead; frame.up is its upper side.
void add_leaf(Mesh& mesh, Surface surface, Vec3 base, const Frame& frame, float size, float width, int rows);

// A smooth curve through the points, t in [0, 1].
Curve spline(std::vector<Vec3> points);

}  // namespace splatmeter::demo
