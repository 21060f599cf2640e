// What the city is made of: triangles for all that is built, places for trees, and what its walls look like.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "city_plan.hpp"
#include "mesh.hpp"

namespace splatmeter::demo {

enum class Masonry : std::uint8_t { brick, plaster, timber };

// One wall of a house; the variant of its triangles is its number. Their u, v are metres from the lower left corner.
struct Facade {
    float width = 0, height = 0;  // to the eaves
    int storeys = 1, bays = 1;
    int door = -1;       // its bay; none where negative
    bool shop = false;   // shop windows on the ground floor
    bool front = false;  // a window in every bay
    bool shutters = false, flowers = false;
    Masonry masonry = Masonry::plaster;
    Vec3 colour, accent;  // of the wall; of doors, shutters and signs
    std::uint32_t key = 0;

    float bay_width() const { return width / static_cast<float>(bays); }
};

struct Planting {
    Vec3 foot;
    float cosine = 1, sine = 0, scale = 1;  // turned about the vertical
    std::uint16_t kind = 0;                 // of the models of trees
    float tint = 1;
};

struct Things {
    Mesh mesh;
    std::vector<Facade> facades;
    std::vector<Planting> trees;
};

Things build_city(const Plan& plan);

// ---- parts of it
// -------------------------------------------------------------------------------------------------------
struct Lot {
    Vec3 centre;  // of the house, on the ground
    Frame frame;  // `ahead` looks to the street
    float width, depth, setback;
};

void add_house(Things& things, const Lot& lot, Random random);
void add_car(Things& things, Vec3 place, const Frame& frame, Random random);  // drives ahead
void add_lamp(Things& things, Vec3 foot, Vec3 towards_road);
void add_bench(Things& things, Vec3 place, const Frame& frame);
void add_fountain(Things& things, Vec3 place);
void add_hedge(Things& things, Vec3 from, Vec3 to, float height, float thickness);
void plant(Things& things, Vec3 foot, std::uint16_t kind, float scale, Random& random);

// A polygon whose corners know where they are on the surface, in metres; counter-clockwise as seen from outside.
struct Mapped {
    Vec3 position;
    float u, v;
};
void add_mapped_face(Mesh& mesh, Surface surface, std::span<const Mapped> corners);

// A box with u, v in metres on its sides, without a floor; centre is that of its bottom.
void add_box(Mesh& mesh, Surface surface, Vec3 centre, const Frame& frame, Vec3 half_sides_and_height);

}  // namespace splatmeter::demo
